"""Status, headers and body of what is answered."""

import gzip
from typing import NamedTuple

from fake_provider.behaviour import Behaviour
from fake_provider.domain.api import Api, Header
from fake_provider.domain.errors import ApiError

_JSON: Header = (b"content-type", b"application/json")
_GZIP: Header = (b"content-encoding", b"gzip")
_STREAM: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
)
_HTML = b"<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>"
_GARBAGE = b'\x00\xff\xfe{"error": {"message": '


class Reply(NamedTuple):
    """An answer that goes out in one piece."""

    status: int
    headers: list[Header]
    body: bytes


def answer_reply(api: Api, behaviour: Behaviour, request_id: str, body: bytes) -> Reply:
    """Return a successful answer."""
    headers = [_JSON]
    if behaviour.gzip_unasked:
        body = gzip.compress(body, mtime=0)
        headers.append(_GZIP)
    return _sized(api, behaviour, request_id, Reply(200, headers, body))


def error_reply(api: Api, error: ApiError, request_id: str) -> Reply:
    """Return an error of our own."""
    body = api.dialect.error(error, request_id)
    return _sized(api, None, request_id, Reply(error.status, [_JSON], body))


def ordered_reply(api: Api, behaviour: Behaviour, request_id: str) -> Reply:
    """Return the error that the behaviour orders."""
    status = behaviour.status or 500
    error = ApiError(
        status=status,
        message=behaviour.error_message,
        type=behaviour.error_type,
        code=behaviour.error_code,
    )
    headers = [_JSON]
    body = api.dialect.error(error, request_id)
    if behaviour.error_body == "html":
        headers, body = [(b"content-type", b"text/html")], _HTML
    elif behaviour.error_body != "json":
        body = _GARBAGE if behaviour.error_body == "garbage" else b""
    if behaviour.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % behaviour.retry_after_s))
    if behaviour.retry_after_ms is not None:
        headers.append((b"retry-after-ms", b"%d" % behaviour.retry_after_ms))
    return _sized(api, behaviour, request_id, Reply(status, headers, body))


def stream_headers(api: Api, behaviour: Behaviour, request_id: str) -> list[Header]:
    """Return the headers of an event stream."""
    headers = [*_STREAM, _GZIP] if behaviour.gzip_unasked else list(_STREAM)
    return _with_usual(api, behaviour, request_id, headers)


def _sized(api: Api, behaviour: Behaviour | None, request_id: str, reply: Reply) -> Reply:
    headers = [*reply.headers, (b"content-length", b"%d" % len(reply.body))]
    return reply._replace(headers=_with_usual(api, behaviour, request_id, headers))


def _with_usual(
    api: Api, behaviour: Behaviour | None, request_id: str, headers: list[Header]
) -> list[Header]:
    headers.append((api.dialect.request_id_header, request_id.encode()))
    headers.extend(api.dialect.headers)
    if behaviour is None or not behaviour.headers:
        return headers
    ordered = {
        name.lower().encode("latin-1"): value.encode("latin-1")
        for name, value in behaviour.headers.items()
    }
    kept = [header for header in headers if header[0] not in ordered]
    return [*kept, *ordered.items()]
