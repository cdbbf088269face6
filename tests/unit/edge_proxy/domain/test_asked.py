"""What is read of a body, and what is wrong with it."""

import pytest

from edge_proxy.domain.asked import Asked, read
from edge_proxy.domain.problems import INVALID_JSON, Problem


@pytest.mark.parametrize(
    ("body", "model", "stream"),
    [
        pytest.param(b'{"model":"m"}', "m", False, id="no stream"),
        pytest.param(b'{"model":"m","stream":null}', "m", False, id="null"),
        pytest.param(b'{"model":"m","stream": true }', "m", True, id="a stream"),
        pytest.param(b' {"stream":false,"model":"a/b:c"}\n', "a/b:c", False, id="no stream, said"),
        pytest.param('{"model":"mödel"}'.encode(), "mödel", False, id="not ASCII"),
        pytest.param(b'{"model":"m\\u0069ni"}', "mini", False, id="escapes"),
    ],
)
def test_what_is_asked(body: bytes, model: str, stream: bool) -> None:
    asked = read(body)
    assert isinstance(asked, Asked)
    assert (asked.model, asked.stream) == (model, stream)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"model"',
        b"{",
        b'{"model":"m"',
        b'{"model":"m"}}',
        b'{"model":"m",}',
        b'{"model":"m","x":[1,]}',
        b'{"model":"m","x":NaN}',
        b"\xef\xbb\xbf{}",
        pytest.param(b'{"model":"m","x":' + b"[" * 50_000 + b"]" * 50_000 + b"}", id="too deep"),
    ],
)
def test_not_json(body: bytes) -> None:
    assert read(body) == INVALID_JSON


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"{}", "missing_parameter", "model"),
        (b'{"model":null}', "invalid_parameter", "model"),
        (b'{"model":7}', "invalid_parameter", "model"),
        (b'{"model":""}', "invalid_parameter", "model"),
        pytest.param(
            b'{"model":"%b"}' % (b"m" * 257), "invalid_parameter", "model", id="endless model"
        ),
        (b'{"model":"m","stream":1}', "invalid_parameter", "stream"),
        (b'{"model":"m","stream":"true"}', "invalid_parameter", "stream"),
        # Some parsers ignore case: to them these would name another model than the one judged.
        (b'{"model":"m","Model":"n"}', "invalid_parameter", "Model"),
        (b'{"model":"m","STREAM":true}', "invalid_parameter", "STREAM"),
        (b'{"model":"m","stream_Options":{}}', "invalid_parameter", "stream_Options"),
    ],
)
def test_wrong(body: bytes, code: str, param: str) -> None:
    problem = read(body)
    assert isinstance(problem, Problem)
    assert (problem.status, problem.type) == (400, "invalid_request_error")
    assert (problem.code, problem.param) == (code, param)
