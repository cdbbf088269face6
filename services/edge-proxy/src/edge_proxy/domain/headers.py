"""Which headers pass, each way. Everything that isn't listed stays here."""

from collections.abc import Iterable, Mapping

RawHeaders = Iterable[tuple[bytes, bytes]]
"""Names in lower case, as ASGI gives them."""

USER_AGENT = "quotagate-edge"

_TO_PROVIDER = frozenset(
    {
        b"content-type",
        b"accept",
        b"openai-beta",
        b"anthropic-version",
        b"anthropic-beta",
        b"x-request-id",
    }
)

_TO_CLIENT = frozenset(
    {"content-type", "x-request-id", "request-id", "openai-processing-ms", "openai-version"}
)

_TO_CLIENT_IN_ERRORS = _TO_CLIENT | {"retry-after", "retry-after-ms", "x-should-retry"}

MAX_ID_CHARS = 200


def to_provider(headers: RawHeaders) -> list[tuple[str, str]]:
    """Return what of a client's headers a provider may see; never who the client is.

    Compression is declined: usage is looked for in the bytes as they pass.
    """
    passed = [
        (name.decode("ascii"), value.decode("latin-1"))
        for name, value in headers
        if name in _TO_PROVIDER
    ]
    return [*passed, ("accept-encoding", "identity"), ("user-agent", USER_AGENT)]


def to_client(headers: Iterable[tuple[str, str]], *, error: bool = False) -> dict[str, str]:
    """Return what of a provider's headers a client may see.

    The provider's own rate limits stay here: the client has ours.
    """
    allowed = _TO_CLIENT_IN_ERRORS if error else _TO_CLIENT
    return {name: value for name, value in headers if name in allowed and value.isprintable()}


def provider_request_id(headers: Mapping[str, str]) -> str | None:
    """Return the id by which the provider knows the attempt, cut to a sane length."""
    found = headers.get("x-request-id") or headers.get("request-id")
    return found[:MAX_ID_CHARS] if found else None


def presented_keys(headers: RawHeaders, *, x_api_key: bool) -> list[str]:
    """Return the texts that may be a key: of `Authorization: Bearer`, and of `x-api-key`.

    A header that comes twice says nothing. Which of two keys counts, the caller decides.
    """
    bearer = _only(headers, b"authorization")
    scheme, _, token = (bearer or b"").partition(b" ")
    found = [token.strip()] if scheme.lower() == b"bearer" else []
    key = _only(headers, b"x-api-key") if x_api_key else None
    if key is not None:
        found.append(key.strip())
    return [text.decode("latin-1") for text in found]


def _only(headers: RawHeaders, name: bytes) -> bytes | None:
    found = [value for other, value in headers if other == name]
    return found[0] if len(found) == 1 else None


def is_event_stream(headers: Mapping[str, str]) -> bool:
    """Say whether an answer may be read as events; one that doesn't say is taken for it."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return media_type in ("", "text/event-stream", "text/plain", "application/octet-stream")
