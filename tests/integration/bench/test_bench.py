"""The benchmark's machinery works on the real stack. What the figures are, no test judges."""

import asyncio
import json
from pathlib import Path

import pytest
from bench.figures import Figures
from bench.parts import decisions, latency, limits, settling, soak, streams, throughput
from bench.plan import Plan
from bench.stage import open_stage

from quotagate.stack import Stack

TINY = Plan(
    warm_up_s=0.5,
    short_s=0.5,
    long_s=0.5,
    streams=10,
    stream_s=0.5,
    chunks=50,
    decisions_s=0.5,
    records=200,
    soak_s=0.5,
    teams=(),
    whole=False,
)
PARTS = (throughput, latency, streams, decisions, limits, settling, soak)
PROMISED = (
    "direct_rps_32",
    "gateway_rps_32",
    "gateway_rps_256",
    "direct_p50_ms_1",
    "gateway_p50_ms_1",
    "direct_p99_ms_half",
    "gateway_p99_ms_half",
    "decisions_per_s",
    "preflight_ratio_all",
    "settled_per_s",
    "streams_held",
)


@pytest.fixture
def figures(stack: Stack) -> Figures:
    stage = open_stage(stack)
    figures = Figures()
    for part in PARTS:
        part.measure(stage, figures, TINY)
    return figures


async def test_it_measures_what_it_promises(figures: Figures, tmp_path: Path) -> None:
    page = tmp_path / "build" / "bench.json"
    await asyncio.to_thread(figures.write, page, {"form": "tiny"})
    written = json.loads(page.read_text(encoding="utf-8"))
    # On a machine that is busy enough, half a second is too short for anything to finish.
    assert all(written[name] >= 0 for name in PROMISED)
    assert "stream_added_us_per_chunk" in written
    assert written["streams_held"] <= TINY.streams
    assert "decisions_not_made" in written
    assert written["about"]["form"] == "tiny"
    assert all(name in figures.table() for name in PROMISED)
