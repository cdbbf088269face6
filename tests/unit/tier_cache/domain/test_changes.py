"""What a change event means for Redis."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.contract import encode
from contracts.control import ACCOUNT_ADJUSTED, KEY_REVOKED, TIER_CHANGED, AccountAdjusted
from kit.money import exact_sum, floor_nano_usd
from tier_cache.domain.changes import BalanceMove, TierEviction, cached_move_nano_usd, read
from tier_cache.errors import UnreadableChangeError

_AMOUNTS = st.decimals(min_value=-(10**9), max_value=10**9, places=12)


def test_a_changed_tier_is_an_eviction() -> None:
    payload = b'{"team_id":"a","tier_id":"x","version":7,"changed_at_us":1,"later":"field"}'
    assert read(TIER_CHANGED.subject_for("a"), payload) == TierEviction("a", 7)


def test_an_adjustment_is_a_move_of_the_balance() -> None:
    adjusted = AccountAdjusted(
        team_id="a",
        entry_id="1",
        amount_usd=Decimal(-2),
        balance_usd=Decimal("-1.5"),
        version=3,
        changed_at_us=1,
    )
    change = read(ACCOUNT_ADJUSTED.subject_for("a"), encode(adjusted))
    assert change == BalanceMove("a", -2_000_000_000, 3)


@pytest.mark.parametrize(
    ("subject", "payload"),
    [
        pytest.param(TIER_CHANGED.subject_for("a"), b"", id="nothing"),
        pytest.param(TIER_CHANGED.subject_for("a"), b"{", id="broken JSON"),
        pytest.param(TIER_CHANGED.subject_for("a"), b"{}", id="fields missing"),
        pytest.param(KEY_REVOKED.subject_for("a"), b"{}", id="another event"),
        *(
            pytest.param(
                ACCOUNT_ADJUSTED.subject_for("a"),
                b'{"team_id":"a","entry_id":"1","amount_usd":"1","balance_usd":"%b","version":1,'
                b'"changed_at_us":1}' % amount,
                id=f"a balance of {amount.decode()}",
            )
            for amount in (
                b"NaN",
                b"sNaN",
                b"-Infinity",
                b"1e10",
                b"-1e999999",
                b"1e99999999999",
                b"1e-99999999999",
            )
        ),
    ],
)
def test_what_makes_no_sense_is_unreadable(subject: str, payload: bytes) -> None:
    with pytest.raises(UnreadableChangeError):
        read(subject, payload)


@given(before_usd=_AMOUNTS, amount_usd=_AMOUNTS)
def test_a_cached_balance_moves_exactly_to_the_rounded_new_one(
    before_usd: Decimal, amount_usd: Decimal
) -> None:
    after_usd = exact_sum(before_usd, amount_usd)
    moved = floor_nano_usd(before_usd) + cached_move_nano_usd(amount_usd, after_usd)
    assert moved == floor_nano_usd(after_usd)
