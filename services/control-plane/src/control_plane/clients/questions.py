"""Ask other services over NATS."""

from typing import TypeVar

import msgspec

from contracts.contract import RequestReply
from control_plane.clients.bus import Connections
from control_plane.domain.errors import UnavailableError
from kit.bus.errors import BusError
from kit.traces import bus as traced
from kit.traces.tracer import Tracer

RequestT = TypeVar("RequestT", bound=msgspec.Struct)
ReplyT = TypeVar("ReplyT", bound=msgspec.Struct)


class Questions:
    """Asks on whatever connection there is at the moment; every question once."""

    def __init__(self, connections: Connections, timeout_s: float, tracer: Tracer | None) -> None:
        self._connections = connections
        self._timeout_s = timeout_s
        self._tracer = tracer

    async def ask(
        self, contract: RequestReply[RequestT, ReplyT], request: RequestT, unavailable: str
    ) -> ReplyT:
        """Return the reply.

        Raises:
            UnavailableError: there was none, which is said in the words of `unavailable`.

        """
        try:
            requester = traced.requester(self._connections.client(), self._tracer)
            return await requester.ask(contract, request, self._timeout_s)
        except BusError as error:
            raise UnavailableError(unavailable) from error
