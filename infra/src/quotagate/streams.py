"""Makes the JetStream streams of the catalogue; safe to repeat."""

from contracts.catalogue import STREAMS
from kit.bus.connection import connection
from kit.bus.streams import ensure_streams
from kit.settings import NatsSettings


async def make_streams(settings: NatsSettings, replicas: int = 1) -> None:
    """Create every stream, or bring it to its configuration, as a user who may do that.

    Raises:
        NotReadyError: NATS or its JetStream doesn't answer, or refuses our user.

    """
    async with connection(settings, "quotagate") as client:
        await ensure_streams(client, STREAMS, replicas)
