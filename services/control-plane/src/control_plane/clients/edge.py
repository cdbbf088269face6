"""Ask an edge which windows its endpoints have."""

from contracts.windows import ENDPOINT_WINDOWS, EndpointWindowsRequest, Window
from control_plane.clients.questions import Questions
from control_plane.domain.errors import InvalidError

_UNAVAILABLE = "No edge answers; the endpoint's windows are unknown at the moment."


class Edge:
    """Any `edge-proxy`, over NATS: all have the same policies."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def windows(self, endpoint: str) -> tuple[Window, ...]:
        """Return the windows that an endpoint has for each API key.

        Raises:
            InvalidError: there is no such endpoint.
            UnavailableError: NATS or the edges don't answer.

        """
        reply = await self._questions.ask(ENDPOINT_WINDOWS, EndpointWindowsRequest(), _UNAVAILABLE)
        found = {each.endpoint: each.windows for each in reply.endpoints}
        if endpoint not in found:
            raise InvalidError(f"endpoint: is none of {', '.join(found)}.", field="endpoint")
        return found[endpoint]
