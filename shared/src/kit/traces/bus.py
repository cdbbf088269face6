"""Questions, answers and publishes over NATS, as spans; `traceparent` travels in their headers.

Only what belongs to a trace makes spans here: a question that no request set off, such as one of
readiness, has none and carries no header.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from nats.aio.client import Client
from nats.micro.request import Request

from contracts.contract import TRACEPARENT, RequestReply
from kit.bus.errors import RefusedError
from kit.bus.publishing import PubAck, Publisher
from kit.bus.requests import Requester
from kit.bus.serving import Handler, ReplyError, Server
from kit.clock import Clock
from kit.traces.tracer import Kind, Tracer

RequestT = TypeVar("RequestT", bound=msgspec.Struct)
ReplyT = TypeVar("ReplyT", bound=msgspec.Struct)

_Notes = dict[str, str | int | float | bool]

_ASKED = ("team_id", "inference_id", "attempt_no")
_ANSWERED = ("decision", "reason", "found")


class TracedRequester(Requester):
    """Asks, and tells how long it waited for which answer."""

    def __init__(self, client: Client, tracer: Tracer) -> None:
        super().__init__(client)
        self._tracer = tracer

    async def ask(
        self,
        contract: RequestReply[RequestT, ReplyT],
        request: RequestT,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> ReplyT:
        """Send the request and return the reply; raises what its parent does."""
        name, about = f"ask {contract.endpoint}", _on(contract.subject, "request")
        with self._tracer.child(name, Kind.CLIENT, about | _of(request, _ASKED)) as span:
            if span is None:
                return await super().ask(contract, request, timeout_s, headers)
            told = _with_current(headers, self._tracer)
            try:
                reply = await super().ask(contract, request, timeout_s, told)
            except RefusedError as error:
                span.fail(error.code.value)
                raise
            span.note(_of(reply, _ANSWERED))
            return reply


class TracedPublisher(Publisher):
    """Publishes, each time it is tried."""

    def __init__(self, client: Client, tracer: Tracer) -> None:
        super().__init__(client)
        self._tracer = tracer

    async def publish_raw(
        self,
        subject: str,
        payload: bytes,
        message_id: str,
        stream: str,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> PubAck:
        """Publish bytes and return the ack; raises what its parent does."""
        about = _on(stream, "send") | {"messaging.message.id": message_id}
        with self._tracer.child(f"publish {stream}", Kind.PRODUCER, about) as span:
            if span is None:
                return await super().publish_raw(
                    subject, payload, message_id, stream, timeout_s, headers
                )
            told = _with_current(headers, self._tracer)
            ack = await super().publish_raw(subject, payload, message_id, stream, timeout_s, told)
            span.note({"quotagate.duplicate": ack.duplicate})
            return ack


class TracedServer(Server):
    """Answers; what comes without a trace is answered without a span."""

    def __init__(
        self, client: Client, service: str, clock: Clock, max_in_flight: int, tracer: Tracer
    ) -> None:
        super().__init__(client, service, clock, max_in_flight)
        self._tracer = tracer

    async def _reply(
        self, contract: RequestReply[Any, Any], handler: Handler[Any, Any], request: Request
    ) -> msgspec.Struct:
        parent = (request.headers or {}).get(TRACEPARENT)
        if parent is None:
            return await super()._reply(contract, handler, request)
        name, about = f"answer {contract.endpoint}", _on(contract.subject, "process")
        with self._tracer.begin(name, Kind.SERVER, parent, about) as span:
            if span is None:
                return await super()._reply(contract, handler, request)

            async def tell(message: msgspec.Struct) -> msgspec.Struct:
                span.note(_of(message, _ASKED))
                reply: msgspec.Struct = await handler(message)
                span.note(_of(reply, _ANSWERED))
                return reply

            try:
                return await super()._reply(contract, tell, request)
            except ReplyError as error:
                span.fail(error.code.value)
                raise


def requester(client: Client, tracer: Tracer | None) -> Requester:
    """Return who asks; without a tracer it knows nothing of traces."""
    return Requester(client) if tracer is None else TracedRequester(client, tracer)


def publisher(client: Client, tracer: Tracer | None) -> Publisher:
    """Return who publishes, likewise."""
    return Publisher(client) if tracer is None else TracedPublisher(client, tracer)


def server(
    client: Client, service: str, clock: Clock, max_in_flight: int, tracer: Tracer | None
) -> Server:
    """Return who answers, likewise."""
    if tracer is None:
        return Server(client, service, clock, max_in_flight)
    return TracedServer(client, service, clock, max_in_flight, tracer)


def _with_current(headers: Mapping[str, str] | None, tracer: Tracer) -> Mapping[str, str]:
    """Return the headers of a message that the span under way sends."""
    return {**(headers or {}), TRACEPARENT: tracer.current() or ""}


def _on(destination: str, operation: str) -> _Notes:
    return {
        "messaging.system": "nats",
        "messaging.operation.type": operation,
        "messaging.destination.name": destination,
    }


def _of(message: msgspec.Struct, names: tuple[str, ...]) -> _Notes:
    """Return what a message has of these, in their plain form."""
    found = {f"quotagate.{name}": getattr(message, name, None) for name in names}
    return {
        name: getattr(value, "value", value)
        for name, value in found.items()
        if value is not None and value != ""
    }
