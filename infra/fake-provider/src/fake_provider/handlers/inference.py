"""One inference call: read, judge, misbehave as ordered, answer."""

import hashlib
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec
from starlette.types import Receive, Scope, Send

from fake_provider import behaviour as behaviours
from fake_provider.behaviour import Behaviour
from fake_provider.connection import Connection
from fake_provider.domain.answer import Answer, answer_to
from fake_provider.domain.api import Api, Header
from fake_provider.domain.call import Call
from fake_provider.domain.errors import ApiError
from fake_provider.domain.responses import RESPONSES, response_id
from fake_provider.domain.usage import is_reported
from fake_provider.errors import ClientGoneError, RefusedCallError
from fake_provider.gates import Gates
from fake_provider.handlers.replies import (
    Reply,
    answer_reply,
    error_reply,
    ordered_reply,
    stream_headers,
)
from fake_provider.journal import Entry, Journal, Outcome
from fake_provider.streams import BodySender, Player

_ANSWERS_STORED = 1_000


@dataclass(slots=True)
class Provider:
    """What all calls share."""

    life: str
    """Makes ids unique across restarts."""

    api_keys: frozenset[bytes]
    journal: Journal
    gates: Gates = field(default_factory=Gates)
    calls_by_fail_key: Counter[str] = field(default_factory=Counter)
    stored: OrderedDict[str, bytes] = field(default_factory=OrderedDict)
    """Answers of `/v1/responses` by id, the latest thousand."""

    def store(self, answer_id: str, body: bytes) -> None:
        """Keep an answer that may be fetched again."""
        self.stored[answer_id] = body
        if len(self.stored) > _ANSWERS_STORED:
            self.stored.popitem(last=False)

    def is_healed(self, behaviour: Behaviour) -> bool:
        """Count a call that is to fail a few times; return whether it has failed often enough."""
        if not behaviour.fail_times:
            return False
        self.calls_by_fail_key[behaviour.fail_key] += 1
        return self.calls_by_fail_key[behaviour.fail_key] > behaviour.fail_times

    def forget(self) -> None:
        """Forget everything that calls have left behind."""
        self.journal.clear()
        self.gates.forget()
        self.calls_by_fail_key.clear()
        self.stored.clear()


class Inference:
    """The ASGI application of one API."""

    def __init__(self, api: Api, provider: Provider) -> None:
        self._api = api
        self._provider = provider

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, and keep it in the journal."""
        journal = self._provider.journal
        connection = Connection(scope, receive, send)
        seq = journal.next_seq()
        entry = Entry(
            seq=seq,
            request_id=f"req_{self._provider.life}{seq:010x}",
            method=scope["method"],
            path=scope["path"],
            received_at_us=time.time_ns() // 1000,
        )
        outcome: Outcome = "cut"  # unless it comes to an end of its own before we are stopped
        try:
            outcome = await self._serve(connection, entry)
        except ClientGoneError:
            outcome = "client_gone"
            await connection.until_gone()
        finally:
            journal.finish(entry, outcome)

    async def _serve(self, connection: Connection, entry: Entry) -> Outcome:
        headers: list[Header] = connection.scope["headers"]
        body = b""
        try:
            body = await connection.body()
            call = self._api.decode(body)
            behaviour = _behaviour_of(call)
        except RefusedCallError as refused:
            error = self._refusal(headers) or refused.error
            self._begin(entry, body, headers)
            return await self._refuse(connection, entry, error)
        except ClientGoneError:
            self._begin(entry, body, headers)
            raise
        entry.marker = call.orders.marker
        entry.model = call.model
        entry.stream = call.stream
        entry.include_usage = call.include_usage
        self._begin(entry, body, headers)
        error_or_none = self._refusal(headers) or _not_supported(call, behaviour)
        if error_or_none is not None:
            return await self._refuse(connection, entry, error_or_none)
        if self._provider.is_healed(behaviour):
            behaviour = msgspec.structs.replace(behaviour, status=None, hang=False, drop=False)
        return await self._behave(connection, entry, call, behaviour)

    def _begin(self, entry: Entry, body: bytes, headers: list[Header]) -> None:
        entry.body_bytes = len(body)
        entry.body_sha256 = hashlib.sha256(body).digest()
        self._provider.journal.begin(entry, headers)

    def _refusal(self, headers: list[Header]) -> ApiError | None:
        return self._api.dialect.refusal(dict(headers), self._provider.api_keys)

    async def _behave(
        self, connection: Connection, entry: Entry, call: Call, behaviour: Behaviour
    ) -> Outcome:
        if behaviour.gate and behaviour.gate_after_chunks is None:
            await connection.wait(self._provider.gates.of(behaviour.gate))
        await connection.pause_ms(behaviour.latency_ms)
        if behaviour.hang:
            await connection.hold()
        if behaviour.drop:
            await connection.drop(reset=behaviour.reset)
            return "dropped"
        if behaviour.status is not None:
            reply = ordered_reply(self._api, behaviour, entry.request_id)
            return await self._reply(connection, entry, reply)
        created_s = entry.received_at_us // 1_000_000
        answer = answer_to(call, behaviour, entry.request_id.removeprefix("req_"), created_s)
        if call.stream:
            return await self._stream(connection, entry, answer)
        return await self._answer(connection, entry, answer)

    async def _answer(self, connection: Connection, entry: Entry, answer: Answer) -> Outcome:
        behaviour = answer.behaviour
        body = self._api.body(answer)
        if call_is_stored(self._api, answer):
            self._provider.store(response_id(answer), body)
        reply = answer_reply(self._api, behaviour, entry.request_id, body)
        entry.status = reply.status
        await connection.start(reply.status, reply.headers)
        sender = BodySender(connection, behaviour, self._provider.gates)
        outcome = await sender.send(reply.body)
        if outcome == "completed" and is_reported(behaviour.usage_shape):
            entry.usage = answer.usage
        return outcome

    async def _stream(self, connection: Connection, entry: Entry, answer: Answer) -> Outcome:
        api, behaviour = self._api, answer.behaviour
        if api.frames is None:
            error = ApiError(status=400, message=f"{api.path} does not stream.")
            return await self._refuse(connection, entry, error)
        if call_is_stored(api, answer):
            self._provider.store(response_id(answer), api.body(answer))
        headers = stream_headers(api, behaviour, entry.request_id)
        entry.status = HTTPStatus.OK
        await connection.start(entry.status, headers)
        player = Player(connection, behaviour, entry, self._provider.gates)
        return await player.play(api.frames(answer), lambda: api.failure(answer, entry.request_id))

    async def _refuse(self, connection: Connection, entry: Entry, error: ApiError) -> Outcome:
        reply = error_reply(self._api, error, entry.request_id)
        return await self._reply(connection, entry, reply)

    async def _reply(self, connection: Connection, entry: Entry, reply: Reply) -> Outcome:
        entry.status = reply.status
        await connection.start(reply.status, reply.headers)
        await connection.end(reply.body)
        return "completed"


def call_is_stored(api: Api, answer: Answer) -> bool:
    """Return whether the answer may be fetched again."""
    return api is RESPONSES and answer.call.store


def _behaviour_of(call: Call) -> Behaviour:
    try:
        return behaviours.decode(call.orders.fake)
    except msgspec.DecodeError as error:
        raise RefusedCallError(
            ApiError(status=400, message=f"metadata.fake: {error}", param="metadata.fake")
        ) from None


def _not_supported(call: Call, behaviour: Behaviour) -> ApiError | None:
    if behaviour.reject_stream_options and call.has_stream_options:
        message = "Unrecognized request argument supplied: stream_options"
        return ApiError(status=400, message=message, param="stream_options")
    return None
