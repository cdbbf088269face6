"""Ask admission what Redis holds of a team."""

from contracts.admission import LIMITS, LimitsReply, LimitsRequest
from control_plane.clients.questions import Questions

_UNAVAILABLE = "Admission doesn't answer; live limits are unknown at the moment."


class Admission:
    """The `admission` service, over NATS."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def limits(self, request: LimitsRequest) -> LimitsReply:
        """Return a team's live limits, those of a key and a model too, and its cached balance.

        Raises:
            UnavailableError: NATS, admission or its Redis doesn't answer.

        """
        return await self._questions.ask(LIMITS, request, _UNAVAILABLE)
