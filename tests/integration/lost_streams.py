"""A stream is deleted under running services, and made again as an operator makes it."""

import contextlib
from collections.abc import AsyncIterator

from integration.bus import nats_settings

from contracts.contract import Stream
from kit.bus.connection import connection
from quotagate.stack import Servers
from quotagate.streams import make_streams


@contextlib.asynccontextmanager
async def without(servers: Servers, stream: Stream) -> AsyncIterator[None]:
    """Delete a stream with all that is in it; make it again at the end."""
    settings = nats_settings(servers, "operator")
    try:
        async with connection(settings, "test that deletes a stream") as client:
            await client.jetstream().delete_stream(stream.name)
        yield
    finally:
        await make_streams(settings)
