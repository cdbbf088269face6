"""Tiers: what is possible stays where the limits' arithmetic is exact."""

from dataclasses import replace
from typing import Any

import pytest

from admission.domain.policy import interval_us, request_burst_us, token_burst_us
from contracts.admission import Policy
from contracts.limits import MOST_RPM, MOST_TPM
from control_plane.domain.errors import InvalidError
from control_plane.domain.tiers import TierNumbers, check

NUMBERS = TierNumbers(rpm=60, tpm=60_000, request_burst=0, token_burst=0)
MINUTE_US = 60 * 10**6


@pytest.mark.parametrize(("burst", "most"), [("request_burst", 60), ("token_burst", 60_000)])
def test_a_burst_is_at_most_its_limit(burst: str, most: int) -> None:
    changed: dict[str, Any] = {burst: most}
    check(replace(NUMBERS, **changed))
    with pytest.raises(InvalidError, match=str(most)) as caught:
        check(replace(NUMBERS, **(changed | {burst: most + 1})))
    assert caught.value.field == burst


@pytest.mark.parametrize("rpm", [1, 59, MOST_RPM - 1, MOST_RPM])
@pytest.mark.parametrize("tpm", [1, 59, MOST_TPM])
def test_the_largest_burst_is_a_debt_that_redis_can_calculate_with(rpm: int, tpm: int) -> None:
    policy = Policy(tier_id="t", rpm=rpm, tpm=tpm, request_burst=rpm, token_burst=tpm)
    assert interval_us(policy) >= 1
    assert request_burst_us(policy) < 2 * MINUTE_US
    assert token_burst_us(policy) == MINUTE_US
