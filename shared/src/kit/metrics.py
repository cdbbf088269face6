"""Prometheus metrics. Label sets are closed: never a team, a key, a URL or a model of a request."""

import asyncio

from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest
from starlette.responses import Response

LATENCY_BUCKETS_S = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
    0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip


_TASKS = Gauge("quotagate_tasks", "Tasks of this process, whatever they are busy with.")
_READY = Gauge("quotagate_ready", "1 when this process may take work, as /health/ready says.")


def exposition(*, ready: bool) -> Response:
    """Answer `/metrics` with what this process has counted."""
    _TASKS.set(len(asyncio.all_tasks()))
    _READY.set(ready)
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
