"""The promises, held against the evidence of a run: `check` returns each one that was broken.

rule.py       the rules by name, and what breaks one
index.py      the evidence, arranged for look-ups
requests.py   what clients were told
provider.py   what the provider saw
money.py      charges, ledger, postings
store.py      what Valkey did meanwhile, and what it holds in the end
"""

from collections.abc import Callable, Iterator, Sequence

from faults.evidence import Evidence
from faults.rules import money, provider, requests, store
from faults.rules.index import Index
from faults.rules.rule import Rule, Violation

__all__ = ["Rule", "Violation", "check"]

_RULES: tuple[Callable[[Index], Iterator[Violation]], ...] = (
    requests.successes_are_recorded_and_charged,
    requests.successes_were_durable_when_told,
    requests.refused_reached_nobody,
    requests.revoked_keys_stay_outside,
    provider.every_request_is_recorded,
    provider.nobody_was_admitted_blindly,
    money.amounts_are_exact,
    money.only_what_was_reported_is_charged,
    money.nothing_is_left_over,
    money.balances_are_ledgers,
    money.debits_are_charges,
    money.postings_happened_as_told,
    store.versions_only_rise,
    store.each_attempt_is_debited_once,
    store.debits_come_before_records,
    store.caches_agree,
)


def check(evidence: Evidence) -> Sequence[Violation]:
    """Return every broken promise, the worst rules first; none means that all held."""
    index = Index(evidence)
    found = [violation for rule in _RULES for violation in rule(index)]
    found += [Violation(Rule.GIVEN_UP, "dead letters", text) for text in evidence.dead_letters]
    found += [Violation(Rule.CHANGE_NEVER_TOLD, "events", name) for name in evidence.never_told]
    found += [Violation(Rule.NOT_PROVED, "verify", text) for text in evidence.unproved]
    found += [Violation(Rule.NOT_RECOVERED, "afterwards", text) for text in evidence.unrecovered]
    return sorted(found, key=lambda violation: list(Rule).index(violation.rule))
