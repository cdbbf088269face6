"""How much a usage counts per minute: exact, also with weights that no double holds."""

from decimal import Decimal
from fractions import Fraction

import pytest

from admission.domain.policy import cost_us
from admission.domain.tokens import CountedTokens, counted, heaviest
from contracts.admission import Policy, TokenWeights
from contracts.usage import Usage

USAGE = Usage(
    input=1, cache_read=10, cache_write_5m=100, cache_write_1h=1_000, output=20_000, reasoning=3
)


@pytest.mark.parametrize(
    ("weights", "input_tokens", "output_tokens"),
    [
        pytest.param(None, 1_111, 20_003, id="no weights"),
        pytest.param(TokenWeights(), 1_111, 20_003, id="one each"),
        pytest.param(
            TokenWeights(cache_read=Decimal("0.1"), reasoning=Decimal(0)),
            1_102,
            20_000,
            id="cached input for a tenth, reasoning for nothing",
        ),
        pytest.param(
            TokenWeights(input=Decimal("0.333333")),
            Fraction(1_110_333_333, 1_000_000),
            20_003,
            id="a weight no double holds",
        ),
    ],
)
def test_counted(
    weights: TokenWeights | None, input_tokens: int | Fraction, output_tokens: int
) -> None:
    found = counted(USAGE, weights)
    assert found == CountedTokens(input_tokens, output_tokens)
    assert found.total == input_tokens + output_tokens


def test_a_fraction_of_a_token_costs_its_time_rounded_up() -> None:
    policy = Policy(tier_id="t", rpm=1, tpm=60_000_000)
    tenth = counted(Usage(cache_read=1), TokenWeights(cache_read=Decimal("0.1")))
    assert cost_us(policy, tenth.total) == 1
    eleven = counted(Usage(cache_read=11), TokenWeights(cache_read=Decimal("0.1")))
    assert cost_us(policy, eleven.total) == 2


def test_heaviest() -> None:
    assert heaviest(None) == 1
    assert heaviest(TokenWeights(output=Decimal("0.5"))) == 1
    assert heaviest(TokenWeights(output=Decimal("2.5"))) == Fraction(5, 2)
