"""Charges, the ledger, and what operators posted."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from faults.evidence import Certainty, Entry, Posting, Record
from faults.rules.index import Index, cost_usd, grouped
from faults.rules.rule import Rule, Violation


def _name(record: Record) -> str:
    return f"record {record.record_id} of {record.team_id} ({record.marker})"


def amounts_are_exact(index: Index) -> Iterator[Violation]:
    """Each charge is what the client had ordered, times the price that its record pins."""
    for charge in index.evidence.charges:
        record = index.record_by_id.get(charge.record_id)
        request = None if record is None else index.requests.get(record.marker)
        if record is None or request is None or request.usage is None:
            continue  # another rule's
        price = index.evidence.prices.get(record.price_id or "")
        expected_usd = None if price is None else cost_usd(request.usage, price)
        if expected_usd is None or Fraction(charge.amount_usd) != expected_usd:
            told = f"{charge.amount_usd} USD, not {expected_usd}, by price {record.price_id}"
            yield Violation(Rule.WRONG_AMOUNT, _name(record), told)


def only_what_was_reported_is_charged(index: Index) -> Iterator[Violation]:
    """What is charged, a provider reported; and each report is charged once at most."""
    seen: Counter[tuple[str, int]] = Counter(
        (record.inference_id, record.attempt_no) for record in index.evidence.records
    )
    for (inference_id, attempt_no), count in seen.items():
        if count > 1:
            told = f"{count} records of attempt {attempt_no}"
            yield Violation(Rule.CHARGED_TWICE, inference_id, told)
    for record_id, charges in index.charges.items():
        if len(charges) > 1:
            yield Violation(Rule.CHARGED_TWICE, f"record {record_id}", f"{len(charges)} charges")
    for marker, records in index.records.items():
        charged = [record for record in records if index.charges.get(record.record_id)]
        all_served = index.served.get(marker, ())
        reports = [served for served in all_served if served.reported or served.outcome == "cut"]
        if not charged or len(charged) <= len(reports):
            continue
        told = f"{len(charged)} charges, {len(reports)} reports, {len(all_served)} requests"
        rule = Rule.CHARGED_TWICE if reports else Rule.CHARGED_UNREPORTED
        yield Violation(rule, _name(charged[-1]), told)


def nothing_is_left_over(index: Index) -> Iterator[Violation]:
    """Every record is charged or has no usage: the load orders nothing that a person must see."""
    for record in index.evidence.records:
        if record.state not in {"SETTLED", "UNBILLABLE"}:
            yield Violation(Rule.NOT_SETTLED, _name(record), record.state)
        elif (record.state == "SETTLED") != bool(index.charges.get(record.record_id)):
            yield Violation(Rule.NOT_SETTLED, _name(record), f"{record.state} without its charge")


def balances_are_ledgers(index: Index) -> Iterator[Violation]:
    """Each balance is the sum of its entries, step by step."""
    for account in index.evidence.accounts:
        entries = index.entries.get(account.team_id, ())
        balance_usd = Fraction(0)
        for version, entry in enumerate(entries, start=1):
            balance_usd += Fraction(entry.amount_usd)
            if entry.version != version or Fraction(entry.balance_after_usd) != balance_usd:
                told = f"entry {entry.entry_id}: version {entry.version}, not {version};"
                told += f" {entry.balance_after_usd} USD after it, not {balance_usd}"
                yield Violation(Rule.BALANCE_NOT_LEDGER, account.team_id, told)
                break
        else:
            if account.version != len(entries) or Fraction(account.balance_usd) != balance_usd:
                told = f"{account.balance_usd} USD at {account.version}, not {balance_usd}"
                yield Violation(Rule.BALANCE_NOT_LEDGER, account.team_id, told)


def debits_are_charges(index: Index) -> Iterator[Violation]:
    """Each usage debit is the sum of the charges that name it, and each charge names one."""
    for entry in index.evidence.entries:
        if entry.reason != "USAGE":
            continue
        charges = index.charges_by_entry.get(entry.entry_id, ())
        sum_usd = sum((Fraction(charge.amount_usd) for charge in charges), Fraction(0))
        if sum_usd != -Fraction(entry.amount_usd):
            told = f"entry {entry.entry_id}: {entry.amount_usd} USD for charges of {sum_usd}"
            yield Violation(Rule.DEBITS_NOT_CHARGES, entry.team_id, told)
    for charge in index.charges_by_entry.get(None, ()):
        if charge.amount_usd:
            told = f"{charge.amount_usd} USD of record {charge.record_id} in no entry"
            yield Violation(Rule.DEBITS_NOT_CHARGES, charge.team_id, told)


_ALLOWED = {
    Certainty.DONE: frozenset({1}),
    Certainty.NOT_DONE: frozenset({0}),
    Certainty.UNKNOWN: frozenset({0, 1}),
}


def postings_happened_as_told(index: Index) -> Iterator[Violation]:
    """Each posting is in the ledger as often as its operator was told."""
    by_note = grouped(
        (entry for entry in index.evidence.entries if entry.reason != "USAGE"),
        lambda entry: entry.note,
    )
    asked = {posting.name for posting in index.evidence.postings}
    for posting in index.evidence.postings:
        yield from _as_told(posting, by_note.get(posting.name, ()))
    for note, entries in by_note.items():
        if note not in asked:
            yield Violation(Rule.POSTING_NOT_AS_TOLD, entries[0].team_id, f"nobody asked: {note}")


def _as_told(posting: Posting, entries: Sequence[Entry]) -> Iterator[Violation]:
    if len(entries) not in _ALLOWED[posting.certainty]:
        told = f"{posting.name} was told {posting.certainty}: {len(entries)} entries"
        yield Violation(Rule.POSTING_NOT_AS_TOLD, posting.team_id, told)
    for entry in entries:
        wanted = (posting.team_id, Fraction(posting.amount_usd))
        if (entry.team_id, Fraction(entry.amount_usd)) != wanted:
            told = f"{posting.name}: {entry.amount_usd} USD, not {posting.amount_usd}"
            yield Violation(Rule.POSTING_NOT_AS_TOLD, entry.team_id, told)
