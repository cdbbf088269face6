"""What the stream CONTROL_EVENTS holds, read as the operator of NATS."""

import json
from dataclasses import dataclass
from typing import Any

import nats.js.errors
from integration.bus import nats_settings

from contracts.control import CONTROL_EVENTS
from kit.bus.connection import connection
from quotagate.stack import Servers


@dataclass(frozen=True, slots=True)
class Published:
    """One message of the stream."""

    event_id: str
    subject: str
    message: dict[str, Any]


async def published(servers: Servers, subject: str) -> list[Published]:
    """Return the control plane's messages of a subject in the order of the stream."""
    found: list[Published] = []
    async with connection(nats_settings(servers, "operator"), "test") as client:
        jetstream = client.jetstream()
        sequence = 1
        while True:
            try:
                message = await jetstream.get_msg(
                    CONTROL_EVENTS.name, seq=sequence, next=True, subject=subject
                )
            except nats.js.errors.NotFoundError:
                return found
            assert message.seq is not None
            # Only the control plane's own have one; other tests publish events by hand.
            event_id = (message.headers or {}).get("Nats-Msg-Id")
            if event_id is not None:
                found.append(Published(event_id, subject, json.loads(message.data or b"null")))
            sequence = message.seq + 1
