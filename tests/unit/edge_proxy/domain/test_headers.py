"""Headers pass by name, not by hope."""

import pytest

from edge_proxy.domain.headers import (
    is_event_stream,
    presented_keys,
    provider_request_id,
    to_client,
    to_provider,
)

SECRETS = [
    (name, b"secret")
    for name in (
        b"authorization",
        b"proxy-authorization",
        b"cookie",
        b"x-api-key",
        b"api-key",
        b"x-auth-token",
        b"x-amz-security-token",
        b"x-goog-api-key",
        b"x-forwarded-for",
        b"x-real-ip",
        b"openai-organization",
        b"openai-project",
        b"idempotency-key",
        b"traceparent",
    )
]
HOP_BY_HOP = [
    (b"connection", b"x-a"),
    (b"keep-alive", b"1"),
    (b"te", b"trailers"),
    (b"transfer-encoding", b"chunked"),
    (b"upgrade", b"h2c"),
    (b"host", b"edge"),
    (b"content-length", b"3"),
    (b"expect", b"100-continue"),
    (b"accept-encoding", b"gzip"),
]


def test_a_provider_learns_nothing_about_the_client() -> None:
    assert to_provider([*SECRETS, *HOP_BY_HOP]) == [
        ("accept-encoding", "identity"),
        ("user-agent", "quotagate-edge"),
    ]


def test_what_a_provider_needs_passes() -> None:
    passed = to_provider([(b"content-type", b"application/json"), (b"openai-beta", b"x=v2")])
    assert passed[:2] == [("content-type", "application/json"), ("openai-beta", "x=v2")]


def test_a_client_sees_the_answers_own_headers_only() -> None:
    headers = [
        ("content-type", "application/json"),
        ("x-request-id", "req_1"),
        ("set-cookie", "a=b"),
        ("x-ratelimit-remaining-tokens", "1"),
        ("retry-after", "7"),
        ("openai-organization", "ours"),
        ("content-length", "3"),
        ("transfer-encoding", "chunked"),
        ("server", "x"),
        ("openai-version", "a\r\nb: c"),
    ]
    shown = {"content-type": "application/json", "x-request-id": "req_1"}
    assert to_client(headers) == shown
    assert to_client(headers, error=True) == {**shown, "retry-after": "7"}


BEARER = (b"authorization", b"Bearer k")
X_API_KEY = (b"x-api-key", b"x")


@pytest.mark.parametrize(
    ("headers", "openai", "anthropic"),
    [
        pytest.param([BEARER], ["k"], ["k"], id="bearer"),
        pytest.param([(b"authorization", b"bearer  k ")], ["k"], ["k"], id="lower case, spaces"),
        pytest.param([X_API_KEY], [], ["x"], id="x-api-key"),
        pytest.param([BEARER, X_API_KEY], ["k"], ["k", "x"], id="both"),
        pytest.param([], [], [], id="none"),
        pytest.param([(b"authorization", b"Basic k")], [], [], id="another scheme"),
        pytest.param([(b"authorization", b"k")], [], [], id="no scheme"),
        pytest.param([(b"authorization", b"Bearer \xff")], ["\xff"], ["\xff"], id="not ASCII"),
        pytest.param([BEARER] * 2, [], [], id="bearer twice"),
        pytest.param([BEARER, *[X_API_KEY] * 2], ["k"], ["k"], id="x-api-key twice"),
    ],
)
def test_where_keys_stand(
    headers: list[tuple[bytes, bytes]], openai: list[str], anthropic: list[str]
) -> None:
    assert presented_keys(headers, x_api_key=False) == openai
    assert presented_keys(headers, x_api_key=True) == anthropic


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({"x-request-id": "r"}, "r"),
        ({"request-id": "r"}, "r"),
        ({"x-request-id": "r" * 999}, "r" * 200),
        ({"x-request-id": ""}, None),
        ({}, None),
    ],
)
def test_provider_request_id(headers: dict[str, str], found: str | None) -> None:
    assert provider_request_id(headers) == found


@pytest.mark.parametrize(
    ("content_type", "stream"),
    [
        ("text/event-stream", True),
        ("Text/Event-Stream; charset=utf-8", True),
        ("", True),
        ("application/json", False),
        ("text/html", False),
    ],
)
def test_event_stream(content_type: str, stream: bool) -> None:
    assert is_event_stream({"content-type": content_type}) is stream
