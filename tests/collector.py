"""An OpenTelemetry collector: takes spans by OTLP over HTTP, and shows them to a test."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from quotagate.stack.ports import HOST

# A service exports once a second, and a busy machine is slow.
_PATIENCE_S = 45


@dataclass(frozen=True, slots=True)
class Seen:
    """A span as it arrived."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    """Empty: a root."""
    attributes: Mapping[str, Any]
    events: Mapping[str, int]
    """When, in nanoseconds."""
    failed: bool
    start_ns: int
    end_ns: int


class Collector:
    """Remembers all that arrived; use :func:`collector`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Seen] = []
        self.bodies: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> int:
        """Take one export; return the answer's status."""
        self.bodies.append(body)
        self.headers.append(headers)
        if path != "/v1/traces":
            return 404
        self.spans += _read(ExportTraceServiceRequest.FromString(body))
        return 200

    def of(self, trace_id: str) -> list[Seen]:
        """Return a trace's spans, as they began."""
        found = [span for span in self.spans if span.trace_id == trace_id]
        return sorted(found, key=lambda span: span.start_ns)

    async def trace(self, trace_id: str, done: Callable[[list[Seen]], bool]) -> list[Seen]:
        """Return a trace's spans once they are as the caller waits for them."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while not done(self.of(trace_id)):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            names = [(span.service, span.name) for span in self.of(trace_id)]
            raise AssertionError(f"after {_PATIENCE_S} s: {names}") from None
        return self.of(trace_id)


@contextlib.contextmanager
def collector() -> Iterator[Collector]:
    """Hold a collector on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = found.take(self.path, dict(self.headers), body)
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 # the library's name
            pass

    server = ThreadingHTTPServer((HOST, 0), Handler)
    found = Collector(f"http://{HOST}:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, name="collector")
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Deaf:
    """A collector that takes connections and never answers; use :func:`deaf`."""

    url: str
    accepted: asyncio.Event = field(default_factory=asyncio.Event)


@contextlib.asynccontextmanager
async def deaf() -> AsyncIterator[Deaf]:
    """Hold such a collector."""
    found = Deaf("")

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.accepted.set()
        with contextlib.suppress(ConnectionError):
            while await reader.read(65_536):
                pass
        writer.close()

    server = await asyncio.start_server(hear, HOST, 0)
    found.url = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
    try:
        yield found
    finally:
        server.close()


def _read(request: ExportTraceServiceRequest) -> Iterator[Seen]:
    for resource in request.resource_spans:
        service = _attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield _seen(service, span)


def _seen(service: str, span: Span) -> Seen:
    return Seen(
        service=service,
        name=span.name,
        kind=Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        attributes=_attributes(span.attributes),
        events={event.name: event.time_unix_nano for event in span.events},
        failed=span.status.code == Status.STATUS_CODE_ERROR,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
    )


def _attributes(found: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in found}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return None if kind is None else getattr(value, kind)
