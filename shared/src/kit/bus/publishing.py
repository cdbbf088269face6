"""Publish an event to its stream and wait for the stream's acknowledgement."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
import nats.errors
from nats.aio.client import Client
from nats.js.api import Header

from contracts.contract import Event, encode
from kit.bus.direct import Asker
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

_MESSAGE_ID = Header.MSG_ID.value
_EXPECTED_STREAM = Header.EXPECTED_STREAM.value


class _StreamError(msgspec.Struct, frozen=True):
    description: str = ""


class PubAck(msgspec.Struct, frozen=True):
    """The stream's word that a message is on its disk."""

    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    """It had the message already, by its id."""
    error: _StreamError | None = None


_PUB_ACK = msgspec.json.Decoder(PubAck)


class Publisher:
    """Publishes once per call. Repeating a call with the same message id is safe."""

    def __init__(self, client: Client) -> None:
        self._asker = Asker(client)

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
            message = await self._asker.ask(
                subject,
                payload,
                timeout_s,
                {_MESSAGE_ID: message_id, _EXPECTED_STREAM: stream, **(headers or {})},
            )
            return _ack(message.data)
        except nats.errors.NoRespondersError as error:
            raise NoResponderError from error
        except _NOT_SENT as error:
            raise DisconnectedError from error
        except (TimeoutError, nats.errors.Error) as error:
            raise NoReplyError from error


def _ack(said: bytes) -> PubAck:
    try:
        ack = _PUB_ACK.decode(said)
    except msgspec.MsgspecError as error:
        raise NoReplyError from error
    if ack.error is not None:
        raise StreamRefusedError(f"stream refused: {ack.error.description}")
    return ack
