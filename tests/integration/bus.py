"""The bus as another service uses it: questions, and the control plane's announcements."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
from integration.services import environment

from contracts.contract import Event, RequestReply
from contracts.errors import ErrorCode
from kit.bus.connection import connection
from kit.bus.errors import FailedError, RefusedError
from kit.bus.publishing import Publisher
from kit.bus.requests import Requester
from kit.settings import NatsSettings, load
from quotagate.stack import Servers

TIMEOUT_S = 10.0
"""A wait that no test waits out, unless it fails."""


def nats_settings(servers: Servers, user: str) -> NatsSettings:
    """Return the settings of a service's connection."""
    return load(NatsSettings, environment(servers, user))


class Bus:
    """Asks questions and announces changes."""

    def __init__(self, requester: Requester, publisher: Publisher) -> None:
        self._requester = requester
        self._publisher = publisher

    async def ask(
        self,
        contract: RequestReply[Any, Any],
        request: msgspec.Struct,
        timeout_s: float = TIMEOUT_S,
    ) -> Any:
        """Return the reply."""
        return await self._requester.ask(contract, request, timeout_s)

    async def announce(self, event: Event[Any], token: str | None, message: msgspec.Struct) -> int:
        """Publish a change as the control plane would; return its sequence in the stream."""
        ack = await self._publisher.publish(event, token, message, uuid.uuid4().hex, TIMEOUT_S)
        return ack.seq


@contextlib.asynccontextmanager
async def bus_of(servers: Servers, user: str) -> AsyncIterator[Bus]:
    """Connect with a service's rights, or as the operator, who has all."""
    async with connection(nats_settings(servers, user), f"test as {user}") as client:
        yield Bus(Requester(client), Publisher(client))


@contextlib.contextmanager
def refused_with(code: ErrorCode) -> Iterator[None]:
    """Expect an error reply with this code."""
    with pytest.raises((RefusedError, FailedError)) as caught:
        yield
    error = caught.value
    assert isinstance(error, RefusedError | FailedError)
    assert error.code == code
