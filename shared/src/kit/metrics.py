"""Prometheus metrics. Label sets are closed: never a team, a key, a URL or a model of a request."""

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response

LATENCY_BUCKETS_S = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
    0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip


async def metrics(_request: Request) -> Response:
    """Answer `/metrics`."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
