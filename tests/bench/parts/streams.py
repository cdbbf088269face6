"""Streams: the time to the first byte, what each chunk costs, and how many are held at once."""

from bench.figures import Figures
from bench.plan import Plan
from bench.quantiles import latencies
from bench.stage import Stage, chat

_US_PER_MS = 1_000
_US_PER_S = 1_000_000
_PACED_INTERVAL_MS = 200
_ONE_AT_A_TIME = 5


def measure(stage: Stage, figures: Figures, plan: Plan) -> None:
    """Measure one stream after the other without pauses, then many at once at a usual pace."""
    _first_byte(stage, figures, plan)
    _chunks(stage, figures, plan)
    _held(stage, figures, plan)


def _first_byte(stage: Stage, figures: Figures, plan: Plan) -> None:
    body = chat(stream=True, chunk_count=5, chunk_interval_ms=5)
    direct = stage.use(stage.direct(1, plan.short_s, body=body)).measured
    ours = stage.use(stage.gateway(1, plan.short_s, body=body)).measured
    direct_ms = latencies(direct.first_byte_us).p50_ms
    gateway_ms = latencies(ours.first_byte_us).p50_ms
    figures.add("stream_added_first_byte_ms", gateway_ms - direct_ms, "ms", "p50, one client")


def _chunks(stage: Stage, figures: Figures, plan: Plan) -> None:
    """Stream as fast as the provider sends: the difference is what a chunk costs on its way."""
    body = chat(stream=True, chunk_count=plan.chunks)
    direct = stage.use(
        stage.direct(1, 60, body=body, requests=_ONE_AT_A_TIME, warm_up_s=0)
    ).measured
    used = stage.use(stage.gateway(1, 60, body=body, requests=_ONE_AT_A_TIME, warm_up_s=0))
    direct_us = latencies(direct.ok_us).p50_ms * _US_PER_MS / plan.chunks
    gateway_us = latencies(used.measured.ok_us).p50_ms * _US_PER_MS / plan.chunks
    figures.add("stream_us_per_chunk_direct", direct_us, "µs", "a stream at full speed, alone")
    figures.add("stream_added_us_per_chunk", gateway_us - direct_us, "µs", "the same, what we add")
    edge_us = used.cpu_s["edge-proxy"] * _US_PER_S / max(1, used.measured.frames)
    figures.add("stream_cpu_us_per_chunk", edge_us, "µs", "the same, CPU of the edge")


def _held(stage: Stage, figures: Figures, plan: Plan) -> None:
    chunks = max(2, int(plan.stream_s * 1_000 / _PACED_INTERVAL_MS))
    body = chat(stream=True, chunk_count=chunks, chunk_interval_ms=_PACED_INTERVAL_MS)
    load = stage.gateway(
        plan.streams, plan.stream_s * 3 + 20, body=body, requests=plan.streams, warm_up_s=0
    )
    used = stage.use(load)
    measured = used.measured
    # All begin within the first moments and last as long as the others: they are held together.
    figures.add("streams_held", measured.ok, "", f"whole, of {plan.streams} streams at once")
    figures.add(
        "streams_cpu_us_per_chunk",
        used.cpu_s["edge-proxy"] * _US_PER_S / max(1, measured.frames),
        "µs",
        f"CPU of the edge, {chunks} chunks each, one every {_PACED_INTERVAL_MS} ms",
    )
    longest_ms = latencies(measured.ok_us).longest_ms
    figures.add(
        "streams_longest_s",
        longest_ms / 1_000,
        "s",
        f"the slowest; the provider takes {(chunks - 1) * _PACED_INTERVAL_MS / 1_000:.1f} s",
    )
