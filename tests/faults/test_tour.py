"""Each kind of fault and each crash point once, while many teams call: every promise holds."""

import pytest
from faults.report import Report
from faults.run import Scenario, run
from faults.strikes.fault import Kind
from faults.strikes.plan import tour

SEEDS = (20_260_729,)
_A_FEW = 200


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed {seed}")
async def report(request: pytest.FixtureRequest) -> Report:
    return await run(Scenario("tour", request.param, tour(request.param)))


# The run itself is the first test's set-up.
@pytest.mark.timeout(420)
def test_no_promise_is_broken(report: Report) -> None:
    assert not report.violations, str(report)


def test_every_crash_point_was_reached(report: Report) -> None:
    assert [str(fault) for fault in report.fizzled if fault.kind is Kind.CRASH] == []


def test_it_was_a_storm(report: Report) -> None:
    """A run in which little happens proves little."""
    evidence = report.evidence
    assert len(evidence.charges) > _A_FEW, str(report)
    assert len(evidence.debits) > _A_FEW, str(report)
    assert {window.fault for window in evidence.windows} == {kind.value for kind in Kind} - (
        {Kind.DISK_FULL.value} if Kind.DISK_FULL not in report.struck else set()
    )
