"""How far reported usage is believed."""

import pytest

from contracts.inference import UsageSource
from contracts.usage import Usage
from edge_proxy.domain.usage import ABSURD_TOKENS, NO_USAGE, Verdict, reading


def test_missing_usage_is_not_zero() -> None:
    assert NO_USAGE.chargeable is None
    assert NO_USAGE.usage is None
    assert NO_USAGE.source is UsageSource.MISSING


def test_counts_are_charged() -> None:
    found = reading(Usage(input=3, output=ABSURD_TOKENS), b"{}")
    assert found.verdict is Verdict.FOUND
    assert found.chargeable == Usage(input=3, output=ABSURD_TOKENS)
    assert found.source is UsageSource.PROVIDER


@pytest.mark.parametrize(
    "token_class",
    ["input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning"],
)
def test_an_absurd_class_is_recorded_and_not_charged(token_class: str) -> None:
    usage = Usage(**{token_class: ABSURD_TOKENS + 1})
    found = reading(usage, b'{"x":1}')
    assert (found.verdict, found.chargeable) == (Verdict.ABSURD, None)
    assert (found.usage, found.reported) == (usage, '{"x":1}')


def test_counts_that_no_integer_column_holds_stay_only_in_words() -> None:
    found = reading(Usage(input=10**30), b'{"prompt_tokens":1e30}')
    assert (found.verdict, found.usage) == (Verdict.ABSURD, None)
    assert found.reported == '{"prompt_tokens":1e30}'


def test_words_are_cut() -> None:
    reported = reading(None, b'"' + b"x" * 100_000 + b'"').reported
    assert reported is not None
    assert len(reported) == 16_384
