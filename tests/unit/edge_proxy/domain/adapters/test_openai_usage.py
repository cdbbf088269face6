"""OpenAI's usage objects, of the shapes that its many speakers send, and what they come to."""

import pytest

from contracts.usage import Usage
from edge_proxy.domain.adapters.adapter import Traits
from edge_proxy.domain.adapters.openai_usage import read_completion
from edge_proxy.domain.usage import UsageReading, Verdict


def read_usage(raw: bytes) -> UsageReading:
    return read_completion(raw, Traits())


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        pytest.param(
            b'{"prompt_tokens":900,"completion_tokens":100,"total_tokens":1000}',
            Usage(input=900, output=100),
            id="plain",
        ),
        pytest.param(
            b'{"prompt_tokens":10000,"completion_tokens":500,'
            b'"prompt_tokens_details":{"cached_tokens":8000}}',
            Usage(input=2000, cache_read=8000, output=500),
            id="prompt includes cached",
        ),
        pytest.param(
            b'{"prompt_tokens":10,"completion_tokens":1000,'
            b'"completion_tokens_details":{"reasoning_tokens":50}}',
            Usage(input=10, output=1000),
            id="completion includes reasoning",
        ),
        pytest.param(
            b'{"prompt_tokens":100,"completion_tokens":1,'
            b'"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}',
            Usage(input=10, cache_read=60, cache_write_5m=30, output=1),
            id="cache writes",
        ),
        pytest.param(
            b'{"prompt_tokens":100,"completion_tokens":1,'
            b'"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":100}}',
            Usage(cache_read=60, cache_write_5m=40, output=1),
            id="writes that overlap reads count once",
        ),
        pytest.param(
            b'{"prompt_tokens":5,"completion_tokens":null,"prompt_tokens_details":null}',
            Usage(input=5),
            id="nulls",
        ),
        pytest.param(b'{"prompt_tokens":5,"total_tokens":5}', Usage(input=5), id="embeddings"),
        pytest.param(b'{"prompt_tokens":0,"completion_tokens":0}', Usage(), id="zero is a count"),
        pytest.param(
            b'{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":{"new":{}},"x":[]}',
            Usage(input=5, output=1),
            id="unknown fields",
        ),
    ],
)
def test_found(raw: bytes, usage: Usage) -> None:
    found = read_usage(raw)
    assert (found.verdict, found.usage) == (Verdict.FOUND, usage)
    assert found.reported == raw.decode()


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b'"twelve"', id="text"),
        pytest.param(b"12", id="a number"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"{}", id="empty"),
        pytest.param(b'{"prompt_tokens":"12","completion_tokens":3}', id="a count as text"),
        pytest.param(b'{"prompt_tokens":-1,"completion_tokens":3}', id="negative"),
        pytest.param(b'{"prompt_tokens":1.5,"completion_tokens":3}', id="half a token"),
        pytest.param(b'{"prompt_tokens":true,"completion_tokens":3}', id="a boolean"),
        pytest.param(
            b'{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":6}}',
            id="more cached than there was",
        ),
        pytest.param(b"[" * 5_000 + b"]" * 5_000, id="deeper than anyone reads"),
    ],
)
def test_unreadable_is_kept_for_a_person(raw: bytes) -> None:
    found = read_usage(raw)
    assert (found.verdict, found.usage, found.chargeable) == (Verdict.UNREADABLE, None, None)
    assert found.reported == raw.decode()


def test_absurd_is_recorded_and_not_charged() -> None:
    found = read_usage(b'{"prompt_tokens":10000000000,"completion_tokens":1}')
    assert (found.verdict, found.chargeable) == (Verdict.ABSURD, None)
    assert found.usage == Usage(input=10**10, output=1)
