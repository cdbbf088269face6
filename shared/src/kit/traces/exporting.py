"""Spans on their way to the collector: a bounded queue, and a thread that empties it.

Whoever ends a span never waits: what finds the queue full is dropped and counted. The library's own
processor would do, but for two things: it doesn't tell what it drops, and it may hold up a stop for
as long as the collector takes.
"""

import threading
from collections import deque

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from prometheus_client import Counter

from kit import log

MOST_WAITING = 8192
_BATCH = 512
_EVERY_S = 1.0

_logger = log.get(__name__)
_EXPORTED = Counter("quotagate_spans_exported_total", "Spans that the collector has taken.")
_DROPPED = Counter(
    "quotagate_spans_dropped_total",
    "Spans that nobody will see: the queue was full, the collector didn't take them, or the process"
    " left before it did.",
    ["reason"],
)
_FULL, _REFUSED, _LEFT = (_DROPPED.labels(why) for why in ("queue_full", "export_failed", "stop"))


class SpanQueue(SpanProcessor):
    """Takes spans as they end."""

    def __init__(self, exporter: SpanExporter, most_waiting: int = MOST_WAITING) -> None:
        self._exporter = exporter
        self._most_waiting = most_waiting
        self._waiting: deque[ReadableSpan] = deque()
        self._woken = threading.Event()
        self._stopping = False
        self._failing = False
        # A thread that is stuck at a collector must not keep the process.
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span; called on the loop, so it must not wait."""
        if self._stopping:
            _LEFT.inc()
            return
        if len(self._waiting) >= self._most_waiting:
            _FULL.inc()
            return
        self._waiting.append(span)
        if len(self._waiting) >= _BATCH and not self._woken.is_set():
            self._woken.set()

    def leave(self, patience_s: float) -> None:
        """Send what is left; whatever isn't sent by then is dropped. Blocks for so long."""
        self._stopping = True
        self._woken.set()
        self._thread.join(patience_s)
        # It would wait before it tries again; now it doesn't.
        self._exporter.shutdown()
        _LEFT.inc(len(self._waiting))
        self._waiting.clear()

    def _run(self) -> None:
        while not self._stopping:
            self._woken.wait(_EVERY_S)
            self._woken.clear()
            self._send_all()
        self._send_all()

    def _send_all(self) -> None:
        while self._waiting:
            self._send([self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))])

    def _send(self, batch: list[ReadableSpan]) -> None:
        try:
            sent = self._exporter.export(batch) is SpanExportResult.SUCCESS
        except Exception:  # the outermost loop of the thread: the next batch has its turn
            _logger.exception("spans not exported", spans=len(batch))
            sent = False
        if sent:
            _EXPORTED.inc(len(batch))
        else:
            _REFUSED.inc(len(batch))
        if sent == self._failing:
            self._failing = not sent
            tell = _logger.info if sent else _logger.warning
            tell("spans are exported again" if sent else "the collector takes no spans")
