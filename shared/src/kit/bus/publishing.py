"""Publish an event to its stream and wait for the stream's acknowledgement."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import Header, PubAck

from contracts.contract import Event, encode
from kit.bus.errors import (
    DisconnectedError,
    NoReplyError,
    NoResponderError,
    StreamRefusedError,
)

MessageT = TypeVar("MessageT", bound=msgspec.Struct)

_NOT_SENT = (
    nats.errors.OutboundBufferLimitError,
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionDrainingError,
    nats.errors.ConnectionReconnectingError,
)


class Publisher:
    """Publishes once per call. Repeating a call with the same message id is safe."""

    def __init__(self, client: Client) -> None:
        self._jetstream: JetStreamContext = client.jetstream()

    async def publish(
        self,
        event: Event[MessageT],
        token: str | None,
        message: MessageT,
        message_id: str,
        timeout_s: float,
    ) -> PubAck:
        """Publish a message of the catalogue; see :meth:`publish_raw`."""
        return await self.publish_raw(
            event.subject_for(token), encode(message), message_id, event.stream, timeout_s
        )

    async def publish_raw(
        self,
        subject: str,
        payload: bytes,
        message_id: str,
        stream: str,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> PubAck:
        """Publish bytes and return the ack: the message is on the server's disk.

        Raises:
            NotDoneError: certainly not stored: not sent, no such stream, or the stream refused.
            OutcomeUnknownError: no ack within `timeout_s`; it may be stored.

        """
        try:
            return await self._jetstream.publish(
                subject,
                payload,
                timeout=timeout_s,
                stream=stream,
                headers={Header.MSG_ID.value: message_id, **(headers or {})},
            )
        except nats.js.errors.NoStreamResponseError as error:
            raise NoResponderError from error
        except nats.js.errors.APIError as error:
            raise StreamRefusedError(f"stream refused: {error.description}") from error
        except _NOT_SENT as error:
            raise DisconnectedError from error
        except (TimeoutError, nats.errors.Error) as error:
            raise NoReplyError from error
