"""Two of the bugs that `make faults-bugs` sows, so that a blind suite is noticed at once."""

import pytest
from faults.bugs import BUGS
from faults.bugs.bug import Bug
from faults.bugs.hunt import hunt

_SOWN = ("[DONE] before the ack", "a refresh ignores the version")


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "bug", [bug for bug in BUGS if bug.name in _SOWN], ids=lambda bug: bug.name
)
async def test_a_sown_bug_is_caught(bug: Bug) -> None:
    catch = await hunt(bug)
    assert catch.caught, str(catch)
