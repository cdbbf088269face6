from collections import Counter

from faults.report import Report
from faults.rules import Rule, Violation
from faults.strikes.fault import Kind
from unit.faults.histories import RIGHT


def _report(*violations: Violation) -> Report:
    return Report(
        scenario="storm",
        seed=3,
        evidence=RIGHT,
        changes=1,
        struck=Counter({Kind.KILL: 2}),
        fizzled=[],
        violations=violations,
    )


def test_the_last_line_is_for_machines() -> None:
    assert str(_report()).splitlines()[-1] == (
        "faults=2 requests=5 acknowledged=2 unknown=2 violations=0"
    )


def test_violations_are_shown_with_their_evidence() -> None:
    text = str(_report(Violation(Rule.WRONG_AMOUNT, "record 7", "1 USD, not 2")))
    assert "wrong amount: record 7: 1 USD, not 2" in text
    assert text.endswith("violations=1")
