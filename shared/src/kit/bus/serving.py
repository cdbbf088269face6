"""Answer the questions of the catalogue, over the NATS services (micro) protocol.

Each request becomes a task of its own as it is read, a bounded number at once, so that requests
which wait for Redis wait together.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import nats.errors
import nats.micro
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.micro.request import Request
from nats.micro.service import Service
from prometheus_client import Counter, Histogram

from contracts.contract import RequestReply, decode, encode
from contracts.errors import SENTENCES, ErrorCode
from kit import log
from kit.bus.connection import flushed
from kit.bus.direct import DirectClient
from kit.clock import Clock
from kit.errors import KitError
from kit.metrics import LATENCY_BUCKETS_S

RequestT = TypeVar("RequestT", bound=msgspec.Struct)
ReplyT = TypeVar("ReplyT", bound=msgspec.Struct)
Handler = Callable[[RequestT], Awaitable[ReplyT]]

_logger = log.get(__name__)
_REPLIES = Counter(
    "quotagate_bus_replies_total", "Requests answered, by endpoint and code.", ["endpoint", "code"]
)
_SECONDS = Histogram(
    "quotagate_bus_request_seconds",
    "Seconds from a request's arrival to its reply.",
    ["endpoint"],
    buckets=LATENCY_BUCKETS_S,
)


class ReplyError(KitError):
    """The request is answered with an error code instead of a reply."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(SENTENCES[code])
        self.code = code


class Server:
    """The endpoints of one service, in a queue group named after it."""

    def __init__(self, client: Client, service: str, clock: Clock, max_in_flight: int) -> None:
        """Serve with `client`; beyond `max_in_flight` requests are refused as overloaded."""
        self._client = client
        self._service_name = service
        self._clock = clock
        self._max_in_flight = max_in_flight
        self._tasks: set[asyncio.Task[None]] = set()
        self._service: Service | None = None

    async def start(self, version: str) -> None:
        """Announce the service on the bus; endpoints follow with :meth:`add`."""
        self._service = await nats.micro.add_service(
            self._client,
            name=self._service_name,
            version=version,
            queue_group=self._service_name,
        )

    async def add(
        self, contract: RequestReply[RequestT, ReplyT], handler: Handler[RequestT, ReplyT]
    ) -> None:
        """Serve one contract with `handler`, which returns the reply or raises ReplyError."""
        if self._service is None:
            raise RuntimeError("start() comes before add()")

        def take(request: Request) -> None:
            if len(self._tasks) < self._max_in_flight:
                work = self._handle(contract, handler, request)
            else:
                work = _respond_error(request, contract.endpoint, ErrorCode.OVERLOADED)
            task = asyncio.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        async def receive(request: Request) -> None:
            take(request)

        await self._service.add_endpoint(
            name=contract.endpoint,
            subject=contract.subject,
            handler=receive,
            queue_group=self._service_name,
            metadata={"summary": contract.summary},
        )
        if isinstance(self._client, DirectClient):
            _shorten(self._client, self._service, take)

    async def stop(self, grace_s: float) -> None:
        """Take no more requests, answer those that have arrived, for `grace_s` at most."""
        if self._service is not None and not self._client.is_closed:
            try:
                await _drain(self._client, self._service)
                await self._service.stop()
            except (nats.errors.Error, TimeoutError) as error:
                _logger.warning("endpoints not drained", error=type(error).__name__)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)
        for task in self._tasks:
            task.cancel()

    async def _handle(
        self, contract: RequestReply[Any, Any], handler: Handler[Any, Any], request: Request
    ) -> None:
        started_s = time.perf_counter()
        try:
            data = encode(await self._reply(contract, handler, request))
        except ReplyError as error:
            await _respond_error(request, contract.endpoint, error.code)
        except Exception:
            _logger.exception("request failed", endpoint=contract.endpoint)
            await _respond_error(request, contract.endpoint, ErrorCode.INTERNAL)
        else:
            _REPLIES.labels(contract.endpoint, "ok").inc()
            await _respond(request, data)
        _SECONDS.labels(contract.endpoint).observe(time.perf_counter() - started_s)

    async def _reply(
        self, contract: RequestReply[Any, Any], handler: Handler[Any, Any], request: Request
    ) -> msgspec.Struct:
        try:
            message = decode(request.data, contract.request)
        except msgspec.MsgspecError as error:
            raise ReplyError(ErrorCode.INVALID_MESSAGE) from error
        deadline_us = getattr(message, "deadline_us", None)
        if deadline_us is not None and self._clock.now_us() > deadline_us:
            # The caller has given up; acting now would move a limit for nobody.
            raise ReplyError(ErrorCode.DEADLINE_EXCEEDED)
        reply: msgspec.Struct = await handler(message)
        return reply


def _shorten(client: DirectClient, service: Service, take: Callable[[Request], None]) -> None:
    """Hand the requests of the endpoint that was added last over as they are read."""
    endpoint = service._endpoints[-1]  # noqa: SLF001 - there is no other way to it
    subscription = endpoint._subscription  # noqa: SLF001 - as above

    def hear(message: Msg) -> None:
        endpoint._num_requests += 1  # noqa: SLF001 - what `nats micro stats` shows
        take(Request(message))

    if subscription is not None:
        client.hand_to(subscription, hear)


async def _drain(client: Client, service: Service) -> None:
    """Have the server send no more requests, and those that are on their way arrive.

    The library's own stop discards them: their callers would wait for nothing. So does its drain
    with those that the server sends between its ping and the word that goes out behind it; so the
    server hears that word first, and drain only waits for what has arrived.
    """
    endpoints = service._endpoints  # noqa: SLF001 - there is no other way to them
    subscriptions = [
        endpoint._subscription  # noqa: SLF001 - as above
        for endpoint in endpoints
        if endpoint._subscription is not None  # noqa: SLF001 - as above
    ]
    for subscription in subscriptions:
        await client._send_unsubscribe(subscription._id)  # noqa: SLF001 - as above
    await flushed(client)
    await asyncio.gather(*(subscription.drain() for subscription in subscriptions))
    endpoints.clear()


async def _respond(request: Request, data: bytes) -> None:
    try:
        await request.respond(data)
    except (nats.errors.Error, ValueError) as error:
        # Nobody to answer: no reply subject, or the connection is gone.
        _logger.warning("reply not sent", error=type(error).__name__)


async def _respond_error(request: Request, endpoint: str, code: ErrorCode) -> None:
    _REPLIES.labels(endpoint, code.value).inc()
    try:
        await request.respond_error(code.value, SENTENCES[code])
    except (nats.errors.Error, ValueError) as error:
        _logger.warning("reply not sent", error=type(error).__name__)
