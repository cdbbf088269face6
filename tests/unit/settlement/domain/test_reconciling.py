"""When a cached balance is mended, and when it is left alone."""

import pytest

from settlement.domain.reconciling import AccountState, CachedBalance, Step, next_step

SETTLED = AccountState(balance_nano_usd=100, version=5, has_pending=False)


def _cached(balance: int, version: int | None = 5) -> CachedBalance:
    return CachedBalance("team", balance, version)


@pytest.mark.parametrize(
    ("cached", "account", "seen_before", "expected"),
    [
        pytest.param(_cached(100), SETTLED, None, Step.NOTHING, id="they agree"),
        pytest.param(_cached(60), SETTLED, None, Step.LOOK_AGAIN, id="a debit, seen first"),
        pytest.param(_cached(60), SETTLED, _cached(70), Step.LOOK_AGAIN, id="it still moves"),
        pytest.param(
            _cached(60), SETTLED, _cached(60), Step.REPAIR, id="a debit whose record never came"
        ),
        pytest.param(_cached(160), SETTLED, _cached(160), Step.REPAIR, id="a lost debit"),
        pytest.param(
            _cached(-20, 4), SETTLED, _cached(-20, 4), Step.REFRESH, id="a credit that never came"
        ),
        pytest.param(
            _cached(100, 4), SETTLED, _cached(100, 4), Step.REFRESH, id="a version behind"
        ),
        pytest.param(_cached(60, None), SETTLED, _cached(60, None), Step.REFRESH, id="no version"),
        pytest.param(
            _cached(60),
            AccountState(balance_nano_usd=100, version=5, has_pending=True),
            _cached(60),
            Step.NOTHING,
            id="a charge is on its way",
        ),
        pytest.param(_cached(60, 4), SETTLED, _cached(60, 3), Step.LOOK_AGAIN, id="a new version"),
        pytest.param(_cached(100, 6), SETTLED, _cached(100, 6), Step.AHEAD, id="database restored"),
    ],
)
def test_step(
    cached: CachedBalance,
    account: AccountState,
    seen_before: CachedBalance | None,
    expected: Step,
) -> None:
    assert next_step(cached, account, seen_before) is expected
