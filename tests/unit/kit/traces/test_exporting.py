"""Whoever ends a span never waits for a collector, and what is lost is counted."""

import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from prometheus_client import REGISTRY

from kit.traces.exporting import SpanQueue

PATIENCE_S = 30.0


class Held(SpanExporter):
    """Takes nothing before it is let go, then says what it was told to say."""

    def __init__(self, result: SpanExportResult | Exception) -> None:
        self.asked = threading.Event()
        self.let_go = threading.Event()
        self.names: list[str] = []
        self._result = result

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked.set()
        assert self.let_go.wait(PATIENCE_S)
        if isinstance(self._result, Exception):
            raise self._result
        self.names += [span.name for span in spans]
        return self._result


class Spans:
    """Ends spans, one after the other."""

    def __init__(self, queue: SpanQueue) -> None:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(queue)
        self._tracer = provider.get_tracer("tests")

    def end(self, *names: str) -> None:
        for name in names:
            self._tracer.start_span(name).end()


def _count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def _dropped(reason: str) -> float:
    return _count("quotagate_spans_dropped_total", reason=reason)


def test_what_is_waiting_is_sent_before_it_leaves() -> None:
    exporter, exported = Held(SpanExportResult.SUCCESS), _count("quotagate_spans_exported_total")
    queue = SpanQueue(exporter)
    exporter.let_go.set()
    Spans(queue).end("a", "b", "c")
    queue.leave(PATIENCE_S)
    assert exporter.names == ["a", "b", "c"]
    assert _count("quotagate_spans_exported_total") == exported + 3


def test_a_full_queue_drops_what_comes_and_counts_it() -> None:
    exporter, dropped = Held(SpanExportResult.SUCCESS), _dropped("queue_full")
    queue = SpanQueue(exporter, most_waiting=2)
    spans = Spans(queue)
    spans.end("at the collector")
    assert exporter.asked.wait(PATIENCE_S)
    spans.end("first", "second", "third", "fourth")
    assert _dropped("queue_full") == dropped + 2
    exporter.let_go.set()
    queue.leave(PATIENCE_S)
    assert exporter.names == ["at the collector", "first", "second"]


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(SpanExportResult.FAILURE, id="refused"),
        pytest.param(RuntimeError("a fault of the exporter's"), id="broken"),
    ],
)
def test_what_the_collector_does_not_take_is_counted(result: SpanExportResult | Exception) -> None:
    exporter, dropped = Held(result), _dropped("export_failed")
    queue = SpanQueue(exporter)
    exporter.let_go.set()
    Spans(queue).end("a", "b")
    queue.leave(PATIENCE_S)
    assert _dropped("export_failed") == dropped + 2


def test_a_stuck_collector_does_not_hold_up_a_stop() -> None:
    exporter, dropped = Held(SpanExportResult.SUCCESS), _dropped("stop")
    queue = SpanQueue(exporter)
    spans = Spans(queue)
    spans.end("at the collector")
    assert exporter.asked.wait(PATIENCE_S)
    spans.end("waits")
    queue.leave(0)
    spans.end("too late")
    assert not exporter.let_go.is_set()
    assert _dropped("stop") == dropped + 2
    exporter.let_go.set()
