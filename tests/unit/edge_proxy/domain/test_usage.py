"""How far reported usage is believed."""

import msgspec
import pytest

from contracts.inference import UsageSource
from contracts.usage import Usage
from edge_proxy.domain.usage import ABSURD_TOKENS, NO_USAGE, ReportedParts, Verdict, reading


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


def told(*parts: bytes) -> str | None:
    collected = ReportedParts()
    for part in parts:
        collected.add(msgspec.Raw(part))
    return collected.read_by(lambda raw: reading(None, raw)).reported


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        pytest.param([b'{"a":1}', b'{"a":2,"b":3}'], '{"a":2,"b":3}', id="the last counts"),
        pytest.param([b'{"a":1,"b":2}', b'{"a":null}'], '{"a":1,"b":2}', id="null is no value"),
        pytest.param([b'{"a":0}', b'{"a":5}', b'{"a":0}'], '{"a":0}', id="zero is a value"),
        pytest.param(
            [b'{"d":{"x":1,"y":2}}', b'{"d":{"x":null,"y":3}}'],
            '{"d":{"x":1,"y":3}}',
            id="details, field by field",
        ),
        pytest.param([b'{"d":{"x":1}}', b'{"d":null}'], '{"d":{"x":1}}', id="details, then null"),
        pytest.param([b'{"d":{"x":1}}', b'{"d":7}'], '{"d":7}', id="details, then a number"),
        pytest.param([b'{"a":1}', b'"many"'], '{"a":1}', id="counts, then a text"),
        pytest.param([b'"many"'], '"many"', id="a text alone"),
        pytest.param([b"{}"], "{}", id="an empty object says something odd"),
        pytest.param([b"null", b"null"], None, id="nothing"),
        pytest.param([], None, id="no part"),
    ],
)
def test_parts_are_states_and_not_added_up(parts: list[bytes], whole: str | None) -> None:
    assert told(*parts) == whole


def test_what_is_remembered_of_usage_is_bounded() -> None:
    collected = ReportedParts()
    for number in range(2_000):
        collected.add(msgspec.Raw(b'{"f%d":"%b"}' % (number, b"x" * 100)))
    assert collected.add(msgspec.Raw(b'{"f":"%b"}' % (b"x" * 100_000)))
    assert len(collected.read_by(lambda raw: reading(None, raw)).reported or "") < 16_384
