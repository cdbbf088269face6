"""What Valkey did during the run, as its monitor showed it, and what it holds in the end."""

from collections import Counter
from collections.abc import Iterator

from faults.evidence import Account, Cached, Told
from faults.rules.index import Index, floor_nano_usd, grouped
from faults.rules.rule import Rule, Violation


def versions_only_rise(index: Index) -> Iterator[Violation]:
    """Within one life of the keys no older balance replaces a newer one."""
    newest: dict[tuple[str, int], int] = {}
    for each in index.evidence.versions:
        known = newest.get((each.team_id, each.life), each.version)
        if each.version < known:
            told = f"{each.version} after {known}, at {each.at_us} µs"
            yield Violation(Rule.VERSION_WENT_BACK, each.team_id, told)
        newest[each.team_id, each.life] = max(known, each.version)


def _expected_debits(index: Index) -> "Counter[tuple[str, int]]":
    """Return how often each team may have been debited by each amount: once a served request.

    The load gives every request of a team a usage of its own, so that an amount names it.
    """
    expected: Counter[tuple[str, int]] = Counter()
    for request in index.evidence.requests:
        served = len(index.served.get(request.marker, ()))
        amounts = {
            index.rough_debit_nano_usd(request, record)
            for record in index.records.get(request.marker, ())
        }
        for amount_nano_usd in amounts - {None}:
            expected[request.team_id, amount_nano_usd or 0] += served
    return expected


def each_attempt_is_debited_once(index: Index) -> Iterator[Violation]:
    """No rough debit is carried out more often than its request was served."""
    expected = _expected_debits(index)
    carried_out = Counter((each.team_id, each.amount_nano_usd) for each in index.evidence.debits)
    for (team_id, amount_nano_usd), count in carried_out.items():
        allowed = expected[team_id, amount_nano_usd]
        if count > allowed:
            told = f"{amount_nano_usd} nano-USD {count} times, served {allowed} times"
            yield Violation(Rule.DEBITED_TOO_OFTEN, team_id, told)


def debits_come_before_records(index: Index) -> Iterator[Violation]:
    """Where an answer shows the limits after postflight, its record was published after that."""
    debits = grouped(index.evidence.debits, lambda each: (each.team_id, each.amount_nano_usd))
    expected = _expected_debits(index)
    for request in index.evidence.requests:
        if request.told is not Told.COMPLETE or not request.limits_shown:
            continue
        for record in index.succeeded(request):
            key = (request.team_id, index.rough_debit_nano_usd(request, record) or 0)
            published_at_us = index.evidence.published_at_us.get(
                f"{record.inference_id}:{record.attempt_no}"
            )
            found = debits.get(key, ())
            if published_at_us is None or len(found) != 1 or expected[key] != 1:
                continue  # not seen, or it may be another's
            late_us = found[0].at_us - published_at_us
            if late_us > 0:
                yield Violation(
                    Rule.RECORD_BEFORE_DEBIT, request.marker, f"debited {late_us} µs after it"
                )


def caches_agree(index: Index) -> Iterator[Violation]:
    """What is cached of a team is what the database says of it."""
    for account in index.evidence.accounts:
        cached = index.evidence.cached.get(account.team_id, Cached())
        for told in _differences(account, cached):
            yield Violation(Rule.CACHE_DIVERGED, account.team_id, told)


def _differences(account: Account, cached: Cached) -> Iterator[str]:
    settled_nano_usd = floor_nano_usd(account.balance_usd)
    if cached.balance_nano_usd is not None and cached.balance_nano_usd != settled_nano_usd:
        drift_nano_usd = cached.balance_nano_usd - settled_nano_usd
        yield f"{drift_nano_usd:+} nano-USD at {cached.version}, settled at {account.version}"
    elif cached.balance_nano_usd is not None and cached.version != account.version:
        yield f"version {cached.version}, settled {account.version}"
    if cached.tier_id is not None and cached.tier_id != account.tier_id:
        yield f"tier {cached.tier_id}, not {account.tier_id}"
