"""Which windows each endpoint has: asked by the control plane, which explains limits."""

from collections.abc import Collection

from contracts.windows import EndpointWindows, EndpointWindowsReply, EndpointWindowsRequest
from edge_proxy.domain.policies import NO_POLICY, Policies


class TellWindows:
    """Answers from this edge's own configuration."""

    def __init__(self, policies: Policies, endpoints: Collection[str]) -> None:
        told = (
            EndpointWindows(
                endpoint=endpoint, windows=policies.get(endpoint, NO_POLICY).keys.windows
            )
            for endpoint in endpoints
        )
        self._reply = EndpointWindowsReply(endpoints=tuple(told))

    async def handle(self, _request: EndpointWindowsRequest) -> EndpointWindowsReply:
        """List the endpoints, also those without windows."""
        return self._reply
