"""What a client sees of a provider's failure."""

import pytest

from edge_proxy.domain import upstream
from edge_proxy.domain.problems import Problem
from edge_proxy.domain.shapes import OPENAI_SHAPE


@pytest.mark.parametrize(
    ("status", "code", "shown"),
    [
        (301, None, upstream.INVALID_ANSWER),
        (304, None, upstream.INVALID_ANSWER),
        (401, "invalid_api_key", upstream.AUTH_FAILED),
        (403, None, upstream.AUTH_FAILED),
        (402, None, upstream.QUOTA_EXHAUSTED),
        (429, "insufficient_quota", upstream.QUOTA_EXHAUSTED),
        (408, None, upstream.TIMED_OUT),
        (504, None, upstream.TIMED_OUT),
        (500, None, upstream.FAILED),
        (502, None, upstream.FAILED),
        (503, None, upstream.FAILED),
        (529, "overloaded_error", upstream.FAILED),
        (599, None, upstream.FAILED),
    ],
)
def test_shown_as_ours(status: int, code: str | None, shown: Problem) -> None:
    assert upstream.shown_instead(status, code) == shown
    assert shown.type == "upstream_error"
    assert shown.headers["x-quotagate-error-source"] == "upstream"


@pytest.mark.parametrize("status", [400, 404, 405, 409, 413, 415, 422, 424, 429, 451])
def test_what_the_client_did_wrong_is_the_providers_to_say(status: int) -> None:
    assert upstream.shown_instead(status, "some_code") is None
    unreadable = upstream.unreadable_refusal(status)
    assert unreadable.status == status
    assert unreadable.headers["x-quotagate-error-source"] == "upstream"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"error":{"code":"insufficient_quota","type":"x"}}', "insufficient_quota"),
        (b'{"error":{"code":null,"type":"insufficient_quota"}}', "insufficient_quota"),
        (b'{"error":{"type":"insufficient_quota"}}', "insufficient_quota"),
        (b'{"error":{"code":429}}', None),
        (b'{"error":{}}', None),
        (b'{"error":"words"}', None),
        (b"{}", None),
        (b"<html>", None),
        (b"", None),
        pytest.param(b'{"error":' * 20_000, None, id="deep"),
    ],
)
def test_error_code(body: bytes, code: str | None) -> None:
    assert OPENAI_SHAPE.error_code(body) == code


@pytest.mark.parametrize(
    ("body", "readable"),
    [
        (b'{"error":{"message":"no"}}', True),
        (b'{"object":"error","message":"as vLLM once wrote it"}', True),
        (b"<html>", False),
        (b"", False),
        (b"[]", False),
    ],
)
def test_readable_errors(body: bytes, readable: bool) -> None:
    assert OPENAI_SHAPE.is_error(body) is readable
