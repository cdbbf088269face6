"""Ask an edge which windows its endpoints have."""

from contracts.windows import ENDPOINT_WINDOWS, EndpointWindowsRequest, Window
from control_plane.clients.bus import Connections
from control_plane.domain.errors import InvalidError, UnavailableError
from kit.bus.errors import BusError
from kit.traces import bus as traced
from kit.traces.tracer import Tracer


class Edge:
    """Any `edge-proxy`, over NATS: all have the same policies."""

    def __init__(self, connections: Connections, timeout_s: float, tracer: Tracer | None) -> None:
        self._connections = connections
        self._timeout_s = timeout_s
        self._tracer = tracer

    async def windows(self, endpoint: str) -> tuple[Window, ...]:
        """Return the windows that an endpoint has for each API key.

        Raises:
            InvalidError: there is no such endpoint.
            UnavailableError: NATS or the edges don't answer.

        """
        try:
            requester = traced.requester(self._connections.client(), self._tracer)
            reply = await requester.ask(ENDPOINT_WINDOWS, EndpointWindowsRequest(), self._timeout_s)
        except BusError as error:
            raise UnavailableError(
                "No edge answers; the endpoint's windows are unknown at the moment."
            ) from error
        found = {each.endpoint: each.windows for each in reply.endpoints}
        if endpoint not in found:
            raise InvalidError(f"endpoint: is none of {', '.join(found)}.", field="endpoint")
        return found[endpoint]
