"""Ask a question of the catalogue."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
import nats.errors
from nats.aio.client import Client
from nats.micro.request import ERROR_CODE_HEADER

from contracts.contract import RequestReply, decode, encode
from contracts.errors import ErrorCode
from kit.bus.direct import Asker
from kit.bus.errors import (
    DisconnectedError,
    FailedError,
    NoReplyError,
    NoResponderError,
    from_code,
)

RequestT = TypeVar("RequestT", bound=msgspec.Struct)
ReplyT = TypeVar("ReplyT", bound=msgspec.Struct)

_NOT_SENT = (
    nats.errors.OutboundBufferLimitError,
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionDrainingError,
    nats.errors.ConnectionReconnectingError,
)


class Requester:
    """Asks other services. Never repeats a question: the caller knows whether it may."""

    def __init__(self, client: Client) -> None:
        self._asker = Asker(client)

    async def ask(
        self,
        contract: RequestReply[RequestT, ReplyT],
        request: RequestT,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> ReplyT:
        """Send the request and return the reply.

        Raises:
            NotDoneError: certainly not carried out: not sent, nobody there, or refused.
            OutcomeUnknownError: no reply within `timeout_s`, or a failure midway.

        """
        try:
            message = await self._asker.ask(contract.subject, encode(request), timeout_s, headers)
        except nats.errors.NoRespondersError as error:
            raise NoResponderError from error
        except _NOT_SENT as error:
            raise DisconnectedError from error
        except (TimeoutError, nats.errors.Error) as error:
            raise NoReplyError from error
        if message.headers and ERROR_CODE_HEADER in message.headers:
            raise from_code(message.headers[ERROR_CODE_HEADER])
        try:
            return decode(message.data, contract.reply)
        except msgspec.MsgspecError as error:
            raise FailedError(ErrorCode.INTERNAL) from error
