"""Ask admission what Redis holds of a team."""

from contracts.admission import LIMITS, LimitsReply, LimitsRequest
from control_plane.clients.bus import Connections
from control_plane.domain.errors import UnavailableError
from kit.bus.errors import BusError
from kit.traces import bus as traced
from kit.traces.tracer import Tracer


class Admission:
    """The `admission` service, over NATS."""

    def __init__(self, connections: Connections, timeout_s: float, tracer: Tracer | None) -> None:
        self._connections = connections
        self._timeout_s = timeout_s
        self._tracer = tracer

    async def limits(self, request: LimitsRequest) -> LimitsReply:
        """Return a team's live limits, those of a key and a model too, and its cached balance.

        Raises:
            UnavailableError: NATS, admission or its Redis doesn't answer.

        """
        try:
            requester = traced.requester(self._connections.client(), self._tracer)
            return await requester.ask(LIMITS, request, self._timeout_s)
        except BusError as error:
            raise UnavailableError(
                "Admission doesn't answer; live limits are unknown at the moment."
            ) from error
