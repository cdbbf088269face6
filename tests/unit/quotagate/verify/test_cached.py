"""What one look at a team's two balances tells."""

import pytest

from quotagate.verify.cached import Cached, Settled, Verdict, judge

CASES = [
    pytest.param(Cached(5, 3), Settled(5, 3, has_pending=False), Verdict.FINE, id="equal"),
    pytest.param(Cached(5, None), Settled(5, 3, has_pending=False), Verdict.FINE, id="unversioned"),
    pytest.param(Cached(4, 3), Settled(5, 3, has_pending=False), Verdict.DIFFERENT, id="lower"),
    pytest.param(Cached(6, 3), Settled(5, 3, has_pending=False), Verdict.DIFFERENT, id="higher"),
    pytest.param(
        Cached(4, 2), Settled(5, 3, has_pending=False), Verdict.DIFFERENT, id="missed one"
    ),
    pytest.param(Cached(4, 3), Settled(5, 3, has_pending=True), Verdict.FINE, id="pending"),
    pytest.param(Cached(5, 4), Settled(5, 3, has_pending=False), Verdict.AHEAD, id="ahead"),
    pytest.param(Cached(5, 4), Settled(5, 3, has_pending=True), Verdict.AHEAD, id="ahead, pending"),
    pytest.param(Cached(5, 4), None, Verdict.NO_ACCOUNT, id="of nobody"),
]


@pytest.mark.parametrize(("cached", "settled", "verdict"), CASES)
def test_a_look_is_judged(cached: Cached, settled: Settled | None, verdict: Verdict) -> None:
    assert judge(cached, settled) is verdict
