"""A real debt is never capped, and every cap is a number that a script can hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.domain.caps import (
    CEILING_US,
    REQUEST_FLOOR_US,
    TOKEN_FLOOR_US,
    longest_request_debt_us,
    longest_token_debt_us,
)
from admission.domain.gcra import Admitted, preflight
from contracts.admission import Policy

NOW_US = 1_788_436_800_000_000


@pytest.mark.parametrize(
    ("policy", "request_us", "token_us"),
    [
        pytest.param(
            Policy(tier_id="t", rpm=60, tpm=60_000),
            REQUEST_FLOOR_US,
            TOKEN_FLOOR_US,
            id="a usual tier",
        ),
        pytest.param(
            Policy(tier_id="t", rpm=1, tpm=60, request_burst=10_000),
            10_001 * 60_000_000,
            1_000_000_000 * 1_000_000,
            id="a slow tier with a long burst",
        ),
        pytest.param(
            Policy(tier_id="t", rpm=1, tpm=1, request_burst=10**9),
            CEILING_US,
            CEILING_US,
            id="the slowest tier",
        ),
    ],
)
def test_table(policy: Policy, request_us: int, token_us: int) -> None:
    assert longest_request_debt_us(policy) == request_us
    assert longest_token_debt_us(policy) == token_us


@settings(deadline=None)
@given(st.integers(1, 10**6), st.integers(0, 10**5), st.integers(0, 10**12))
def test_no_admitted_request_makes_a_debt_beyond_the_cap(
    rpm: int, request_burst: int, debt_us: int
) -> None:
    policy = Policy(tier_id="t", rpm=rpm, tpm=1, request_burst=request_burst)
    decision = preflight(policy, NOW_US, NOW_US + debt_us, None)
    if isinstance(decision, Admitted):
        assert decision.request_tat_us - NOW_US <= longest_request_debt_us(policy)
