"""What the vectors don't spell out: waits, bursts, ties, and repayment to the microsecond."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.domain.gcra import (
    Admitted,
    Limit,
    Limited,
    limit_state,
    postflight,
    preflight,
)
from admission.domain.policy import cost_us, interval_us, request_burst_us, token_burst_us
from contracts.admission import Policy

NOW_US = 1_788_436_800_000_000
PLAIN = Policy(tier_id="plain", rpm=60, tpm=60_000)

policies = st.builds(
    Policy,
    tier_id=st.just("any"),
    rpm=st.integers(1, 1_000_000),
    tpm=st.integers(1, 1_000_000_000),
    request_burst=st.integers(0, 10_000),
    token_burst=st.integers(0, 10_000_000),
)
tats_us = st.none() | st.integers(NOW_US - 10_000_000_000, NOW_US + 10_000_000_000)


@pytest.mark.parametrize(
    ("request_debt_us", "token_debt_us", "expected"),
    [
        pytest.param(5, 4, Limited(Limit.REQUESTS, 5), id="requests wait longer"),
        pytest.param(4, 5, Limited(Limit.TOKENS, 5), id="tokens wait longer"),
        pytest.param(5, 5, Limited(Limit.REQUESTS, 5), id="equal waits count as requests"),
        pytest.param(0, 1, Limited(Limit.TOKENS, 1), id="tokens alone"),
        pytest.param(1, 0, Limited(Limit.REQUESTS, 1), id="requests alone"),
        pytest.param(0, 0, Admitted(NOW_US + 1_000_000), id="neither"),
    ],
)
def test_who_refuses(request_debt_us: int, token_debt_us: int, expected: object) -> None:
    assert preflight(PLAIN, NOW_US, NOW_US + request_debt_us, NOW_US + token_debt_us) == expected


def test_an_overshoot_is_paid_back_exactly() -> None:
    tat_us = postflight(PLAIN, NOW_US, None, 600_000)
    assert tat_us == NOW_US + 600_000_000
    assert preflight(PLAIN, tat_us - 1, None, tat_us) == Limited(Limit.TOKENS, 1)
    assert isinstance(preflight(PLAIN, tat_us, None, tat_us), Admitted)


def test_with_burst_the_wait_is_shorter_than_the_reset() -> None:
    policy = Policy(tier_id="burst", rpm=60, tpm=60_000, request_burst=2)
    request_tat_us = NOW_US + 3_000_000
    assert preflight(policy, NOW_US, request_tat_us, None) == Limited(Limit.REQUESTS, 1_000_000)
    assert limit_state(policy, NOW_US, request_tat_us, None).reset_requests_us == 3_000_000


@settings(deadline=None)
@given(policies, tats_us, tats_us)
def test_the_wait_is_exact(
    policy: Policy, request_tat_us: int | None, token_tat_us: int | None
) -> None:
    decision = preflight(policy, NOW_US, request_tat_us, token_tat_us)
    if isinstance(decision, Limited):
        ready_us = NOW_US + decision.retry_after_us
        early = preflight(policy, ready_us - 1, request_tat_us, token_tat_us)
        assert early == Limited(decision.limited_by, 1)
        assert isinstance(preflight(policy, ready_us, request_tat_us, token_tat_us), Admitted)


@settings(deadline=None)
@given(policies, st.none() | st.integers(NOW_US - 1_000, NOW_US + 100_000_000))
def test_remaining_requests_are_what_would_be_admitted(
    policy: Policy, request_tat_us: int | None
) -> None:
    remaining = limit_state(policy, NOW_US, request_tat_us, None).remaining_requests
    tat_us = request_tat_us
    for _ in range(min(remaining, 50)):
        decision = preflight(policy, NOW_US, tat_us, None)
        assert isinstance(decision, Admitted)
        tat_us = decision.request_tat_us
    if remaining <= 50:
        assert isinstance(preflight(policy, NOW_US, tat_us, None), Limited)


@settings(deadline=None)
@given(policies, st.integers(0, 10**10))
def test_rounding_is_up_and_by_less_than_a_microsecond(policy: Policy, tokens: int) -> None:
    minute_us = 60_000_000
    assert 0 <= interval_us(policy) * policy.rpm - minute_us < policy.rpm
    assert 0 <= cost_us(policy, tokens) * policy.tpm - tokens * minute_us < policy.tpm
    assert request_burst_us(policy) == policy.request_burst * interval_us(policy)
    assert token_burst_us(policy) == cost_us(policy, policy.token_burst)
