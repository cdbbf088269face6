"""Bodies as the provider gets them: the client's bytes but for what must differ."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_proxy.domain.adapters.adapter import Api, Traits
from edge_proxy.domain.adapters.answer import Outgoing
from edge_proxy.domain.adapters.openai import openai
from edge_proxy.domain.asked import Asked, read
from edge_proxy.domain.endpoints import CHAT_COMPLETIONS
from edge_proxy.domain.usage import Verdict

CHAT = openai(Traits()).apis[CHAT_COMPLETIONS.path]
SIMPLE_CHAT = openai(Traits(stream_usage=False)).apis[CHAT_COMPLETIONS.path]
OPTION = b'"stream_options":{"include_usage":true}'


def outgoing(body: bytes, model: str = "m", api: Api = CHAT) -> Outgoing:
    asked = read(body)
    assert isinstance(asked, Asked)
    return api.outgoing(asked, model)


@pytest.mark.parametrize(
    ("body", "sent", "hides_usage"),
    [
        pytest.param(
            b' {"model" : "m", "x": [1, 2]}\n', b' {"model" : "m", "x": [1, 2]}\n', False,
            id="no stream: untouched",
        ),
        pytest.param(
            b'{"model":"m","stream_options":{"include_usage":false}}',
            b'{"model":"m","stream_options":{"include_usage":false}}',
            False,
            id="no stream: its options are the client's business",
        ),
        pytest.param(
            b'{"model": "m", "stream": true }\r\n',
            b'{"model": "m", "stream": true ,' + OPTION + b"}",
            True,
            id="asked for, at the end",
        ),
        pytest.param(
            b'{"model":"m","stream":true,"stream_options":{"include_usage": true, "a":1}}',
            b'{"model":"m","stream":true,"stream_options":{"include_usage": true, "a":1}}',
            False,
            id="the client asks itself: untouched",
        ),
        pytest.param(
            b'{"model":"m","stream_options":{"a": 1,"include_usage":false},"stream":true}',
            b'{"model":"m","stream_options":{"a":1,"include_usage":true},"stream":true}',
            True,
            id="the client says no",
        ),
        pytest.param(
            b'{"model":"m","stream":true,"stream_options":null}',
            b'{"model":"m","stream":true,' + OPTION + b"}",
            True,
            id="null",
        ),
        pytest.param(
            b'{"model":"m","stream":true,"stream_options":"x"}',
            b'{"model":"m","stream":true,"stream_options":"x"}',
            False,
            id="not options: the provider refuses them itself",
        ),
    ],
)  # fmt: skip
def test_usage_is_asked_for(body: bytes, sent: bytes, hides_usage: bool) -> None:
    assert outgoing(body) == Outgoing(sent, hides_usage)


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
        b'{"model":"m","stream":true,"stream_options":{"include_usage":false}}',
        b'{"model":"m","stream":true}',
    ],
)
def test_a_provider_that_does_not_know_the_option_never_gets_it(body: bytes) -> None:
    sent = outgoing(body, api=SIMPLE_CHAT)
    assert json.loads(sent.body) == {"model": "m", "stream": True}
    assert not sent.hides_usage


@pytest.mark.parametrize("stream", [b"", b',"stream":true'], ids=["whole", "stream"])
def test_the_deployment_names_the_model(stream: bytes) -> None:
    body = b'{ "model" : "m", "messages": [ {"model" : "kept"} ]%b}' % stream
    sent = json.loads(outgoing(body, model='other "name"').body)
    assert sent["model"] == 'other "name"'
    assert sent["messages"] == [{"model": "kept"}]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"model":"cheap","model":"m"}', id="twice"),
        pytest.param(b'{"mod\\u0065l":"cheap","model":"m"}', id="once in escapes"),
        pytest.param(b'{"model":"cheap","\\u006dodel":"m","stream":true}', id="and in a stream"),
    ],
)
def test_the_provider_sees_the_model_that_was_judged(body: bytes) -> None:
    sent = outgoing(body).body
    assert sent.count(b'"model"') == 1
    assert b"\\u006" not in sent
    assert json.loads(sent)["model"] == "m"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(
    members=st.dictionaries(
        st.text().filter(lambda name: name.lower() not in ("model", "stream", "stream_options")),
        JSON,
        max_size=4,
    ),
    options=st.none() | st.dictionaries(st.text(), JSON, max_size=2),
    stream=st.booleans(),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 2]),
)
def test_everything_else_stays_what_it_was(
    members: dict[str, Any],
    options: dict[str, Any] | None,
    stream: bool,
    ascii_only: bool,
    indent: int | None,
) -> None:
    asked = {"model": "m", **members, "stream": stream}
    if options is not None:
        asked["stream_options"] = options
    body = json.dumps(asked, ensure_ascii=ascii_only, indent=indent).encode(
        "utf-8", "surrogatepass"
    )
    sent = outgoing(body).body
    if not stream:
        assert json.loads(sent) == asked
        return
    expected = {**asked, "stream_options": {**(options or {}), "include_usage": True}}
    assert json.loads(sent) == expected
    # Values keep their very bytes: only the top level may be written anew.
    untouched = read(sent)
    original = read(body)
    assert isinstance(untouched, Asked)
    assert isinstance(original, Asked)
    for name in members:
        assert bytes(untouched.members[name]) == bytes(original.members[name])


def test_a_whole_answer() -> None:
    answer = CHAT.read_answer(b'{"model":"m-2","usage":{"prompt_tokens":1},"choices":[]}')
    assert answer is not None
    assert (answer.model_served, answer.usage.verdict) == ("m-2", Verdict.FOUND)


@pytest.mark.parametrize(
    ("body", "model_served"),
    [
        (b"{}", None),
        (b'{"model":null,"usage":null}', None),
        (b'{"model":7}', None),
        (b'{"model":""}', None),
    ],
)
def test_an_answer_that_says_little(body: bytes, model_served: str | None) -> None:
    answer = CHAT.read_answer(body)
    assert answer is not None
    assert (answer.model_served, answer.usage.verdict) == (model_served, Verdict.MISSING)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"a":', b"null", b'"x"'])
def test_no_answer(body: bytes) -> None:
    assert CHAT.read_answer(body) is None
