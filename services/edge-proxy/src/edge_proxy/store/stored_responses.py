"""The memory of stored responses, in the bus's key-value store."""

from nats.aio.client import Client
from prometheus_client import Counter

from contracts.responses import STORED_RESPONSES, StoredResponse
from edge_proxy.domain.inference import Attempt
from edge_proxy.domain.stored_responses import entry_key
from kit import log
from kit.bus.buckets import BucketStore
from kit.bus.errors import BusError, ConflictError

_logger = log.get(__name__)
_FORGOTTEN = Counter(
    "quotagate_stored_responses_forgotten_total",
    "Stored responses that couldn't be remembered: they can't be fetched again.",
)


class StoredResponses:
    """Whose each stored response is, and where, for as long as providers keep them."""

    def __init__(self, client: Client, timeout_s: float) -> None:
        self._store = BucketStore(client, STORED_RESPONSES, timeout_s)

    async def remember(self, attempt: Attempt) -> None:
        """Remember the response of an attempt, if there is one; the answer doesn't depend on it."""
        response_id, inference = attempt.answer.stored_id, attempt.inference
        if response_id is None:
            return
        team_id = inference.caller.team_id
        stored = StoredResponse(
            team_id=team_id, provider=attempt.leg.target.provider.name, model=inference.model
        )
        key = entry_key(team_id, response_id)
        try:
            await self._store.write(key, stored, 0, STORED_RESPONSES.max_age_s)
        except ConflictError:
            # A provider that gives an id twice means the same response.
            return
        except BusError as error:
            _FORGOTTEN.inc()
            _logger.warning(
                "stored response not remembered",
                error=type(error).__name__,
                inference_id=inference.inference_id,
            )

    async def find(self, team_id: str, response_id: str) -> StoredResponse | None:
        """Return what is known of a team's response; None: nothing.

        Raises:
            BusError: nobody can say.

        """
        return (await self._store.read(entry_key(team_id, response_id))).value
