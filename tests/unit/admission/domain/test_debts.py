"""The longest debts that usage can explain."""

from decimal import Decimal

import msgspec
import pytest

from admission.domain.debts import LongestDebts, longest_debts
from contracts.admission import Policy, Rates, TokenWeights

_DAY_US = 24 * 3_600_000_000
_TOKENS = 100_000_000


def _policy(*, rpm: int = 60, tpm: int = 60_000, request_burst: int = 0) -> Policy:
    return Policy(tier_id="t", rpm=rpm, tpm=tpm, request_burst=request_burst)


@pytest.mark.parametrize(
    ("policies", "longest"),
    [
        pytest.param([], LongestDebts(_DAY_US, _DAY_US), id="nothing known: a day"),
        pytest.param([_policy(tpm=10**9)], LongestDebts(_DAY_US, _DAY_US), id="fast tiers: a day"),
        pytest.param(
            [_policy()], LongestDebts(_DAY_US, _TOKENS * 1_000), id="60,000 TPM: 1 ms a token"
        ),
        pytest.param(
            [_policy(), _policy(tpm=600)],
            LongestDebts(_DAY_US, _TOKENS * 100_000),
            id="the slowest tier counts",
        ),
        pytest.param(
            [_policy(rpm=1, request_burst=9_999, tpm=10**9)],
            LongestDebts(10_000 * 60_000_000, _DAY_US),
            id="a full burst and one request",
        ),
        pytest.param(
            [
                msgspec.structs.replace(
                    _policy(tpm=10**9), key_rates=Rates(rpm=1, request_burst=9_999)
                )
            ],
            LongestDebts(10_000 * 60_000_000, _DAY_US),
            id="a full burst of a key and one request",
        ),
        pytest.param(
            [msgspec.structs.replace(_policy(), input_tpm=600)],
            LongestDebts(_DAY_US, _TOKENS * 100_000),
            id="a slower limit of input tokens",
        ),
        pytest.param(
            [msgspec.structs.replace(_policy(), model_rates={"m": Rates(tpm=600)})],
            LongestDebts(_DAY_US, _TOKENS * 100_000),
            id="a slower model",
        ),
        pytest.param(
            [msgspec.structs.replace(_policy(), tpm_weights=TokenWeights(output=Decimal("2.5")))],
            LongestDebts(_DAY_US, _TOKENS * 2_500),
            id="the heaviest tokens",
        ),
        pytest.param(
            [_policy(rpm=1, request_burst=10**12, tpm=1)],
            LongestDebts(2**52, 2**52),
            id="never beyond what a script can calculate with",
        ),
    ],
)
def test_longest_debts(policies: list[Policy], longest: LongestDebts) -> None:
    assert longest_debts(policies, _TOKENS) == longest
