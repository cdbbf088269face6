"""The tracer, on OpenTelemetry's SDK, with its exporter for OTLP over HTTP."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Iterator
from importlib.metadata import version
from urllib.parse import urlsplit

import opentelemetry.trace as otel
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from kit.ids import new_id
from kit.traceparent import TraceParent, parse
from kit.traces.exporting import SpanQueue
from kit.traces.tracer import Attributes, Kind, Past, Span

_PATIENCE_S = 2.0
_NS_PER_US = 1_000
_MAX_CHARS = 256
"""A provider says what model served; nothing bounds its word."""
_PATH = "/v1/traces"
_KINDS = {kind: otel.SpanKind[kind.name] for kind in Kind}


class SdkTracer:
    """The tracer of one process."""

    def __init__(self, service: str, endpoint: str, sample: float) -> None:
        """Send a share of the traces to a collector; one without a path has the usual one."""
        # Said once by our queue, and counted; the library would say it for every batch.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
        full = endpoint if urlsplit(endpoint).path.strip("/") else endpoint.rstrip("/") + _PATH
        self._queue = SpanQueue(OTLPSpanExporter(endpoint=full))
        provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(sample)),
            resource=Resource.create(
                {
                    "service.name": service,
                    "service.namespace": "quotagate",
                    "service.version": version("quotagate-shared"),
                    "service.instance.id": new_id(),
                }
            ),
            shutdown_on_exit=False,
            span_limits=SpanLimits(max_span_attribute_length=_MAX_CHARS),
        )
        provider.add_span_processor(self._queue)
        self._tracer = provider.get_tracer("quotagate")

    def current(self) -> str | None:
        """Return the `traceparent` of the span under way; None: nothing is being recorded."""
        span = otel.get_current_span()
        return _name_of(span) if span.is_recording() else None

    @contextlib.contextmanager
    def begin(
        self, name: str, kind: Kind, parent: str | None, attributes: Attributes
    ) -> Iterator[Span | None]:
        """Begin what a request of somebody else's sets off; see :class:`kit.traces.tracer`."""
        with self._under_way(name, kind, _context(parent), attributes) as span:
            yield span

    @contextlib.contextmanager
    def child(self, name: str, kind: Kind, attributes: Attributes) -> Iterator[Span | None]:
        """Begin a part of the span under way; None: nothing is being recorded."""
        if not otel.get_current_span().is_recording():
            yield None
            return
        with self._under_way(name, kind, None, attributes) as span:
            yield span

    def tell(self, past: Past, parent: str | None = None) -> None:
        """Record what is over already."""
        if parent is None and not otel.get_current_span().is_recording():
            return
        span = self._tracer.start_span(
            past.name,
            context=None if parent is None else _context(parent),
            kind=_KINDS[past.kind],
            attributes=past.attributes,
            start_time=past.started_us * _NS_PER_US,
        )
        for event, at_us in past.events.items():
            span.add_event(event, timestamp=at_us * _NS_PER_US)
        if past.error_type is not None:
            _Recorded(span).fail(past.error_type)
        # Two clocks may have been read, and none of them is the wrong one.
        span.end(max(past.started_us, past.ended_us) * _NS_PER_US)

    async def close(self) -> None:
        """Send what is left, within two seconds; nothing is recorded afterwards."""
        loop, left = asyncio.get_running_loop(), asyncio.Event()

        def leave() -> None:
            self._queue.leave(_PATIENCE_S)
            with contextlib.suppress(RuntimeError):  # the loop didn't wait for us
                loop.call_soon_threadsafe(left.set)

        # Not of the loop's own threads, which it waits for however long they take.
        threading.Thread(target=leave, name="last spans", daemon=True).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * _PATIENCE_S):
                await left.wait()

    @contextlib.contextmanager
    def _under_way(
        self, name: str, kind: Kind, context: Context | None, attributes: Attributes
    ) -> Iterator[Span | None]:
        span = self._tracer.start_span(
            name, context=context, kind=_KINDS[kind], attributes=attributes
        )
        recorded = _Recorded(span) if span.is_recording() else None
        with otel.use_span(
            span, end_on_exit=True, record_exception=False, set_status_on_exception=False
        ):
            try:
                yield recorded
            except BaseException as error:
                if recorded is not None and not recorded.failed:
                    recorded.fail(type(error).__name__)
                raise


class _Recorded:
    """A span of the library's."""

    def __init__(self, span: otel.Span) -> None:
        self._span = span
        self.failed = False

    def note(self, attributes: Attributes) -> None:
        self._span.set_attributes(attributes)

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def fail(self, error_type: str) -> None:
        self.failed = True
        self._span.set_attribute("error.type", error_type)
        self._span.set_status(otel.StatusCode.ERROR)


def _name_of(span: otel.Span) -> str:
    context = span.get_span_context()
    return str(
        TraceParent(
            otel.format_trace_id(context.trace_id),
            otel.format_span_id(context.span_id),
            context.trace_flags.sampled,
        )
    )


def _context(parent: str | None) -> Context:
    """Return where a span begins that goes on from another process, or from nowhere."""
    known = parse(parent)
    if known is None:
        return Context()
    remote = otel.SpanContext(
        int(known.trace_id, 16),
        int(known.span_id, 16),
        is_remote=True,
        trace_flags=otel.TraceFlags(known.sampled),
    )
    return otel.set_span_in_context(otel.NonRecordingSpan(remote), Context())
