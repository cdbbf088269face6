"""Questions and answers on a real server: done, not done and unknown are told apart."""

import asyncio
import time

import pytest
from nats.aio.client import Client

from contracts.contract import Message, RequestReply
from contracts.errors import ErrorCode
from kit.bus.connection import connection, flushed
from kit.bus.errors import (
    DisconnectedError,
    FailedError,
    NoReplyError,
    NoResponderError,
    RefusedError,
)
from kit.bus.requests import Requester
from kit.bus.serving import ReplyError, Server
from kit.clock import SystemClock
from kit.ids import new_id
from quotagate.stack import Stack

from .conftest import nats_settings


class Question(Message, frozen=True, kw_only=True):
    say: str
    deadline_us: int


class Answer(Message, frozen=True, kw_only=True):
    said: str


def _contract() -> RequestReply[Question, Answer]:
    return RequestReply(
        subject=f"quota.v1.test.{new_id()}",
        request=Question,
        reply=Answer,
        served_by="tester",
        summary="A question of the tests.",
    )


def _question(say: str, *, expired: bool = False) -> Question:
    return Question(say=say, deadline_us=time.time_ns() // 1000 + (-1 if expired else 5_000_000))


async def _echo(question: Question) -> Answer:
    if question.say == "refuse":
        raise ReplyError(ErrorCode.UNKNOWN_TEAM)
    if question.say == "fail":
        raise ReplyError(ErrorCode.STORE_UNAVAILABLE)
    if question.say == "crash":
        raise RuntimeError("a secret detail")
    if question.say == "hang":
        await asyncio.Event().wait()
    return Answer(said=question.say)


async def _serve(client: Client, max_in_flight: int = 100) -> RequestReply[Question, Answer]:
    contract = _contract()
    server = Server(client, "tester", SystemClock(), max_in_flight)
    await server.start("0.0.1")
    await server.add(contract, _echo)
    await flushed(client)
    return contract


async def test_an_answer(nats: Client) -> None:
    contract = await _serve(nats)
    assert await Requester(nats).ask(contract, _question("hello"), 2) == Answer(said="hello")


async def test_nobody_serves_is_known_at_once(nats: Client) -> None:
    with pytest.raises(NoResponderError):
        await Requester(nats).ask(_contract(), _question("hello"), 30)


@pytest.mark.parametrize(
    ("say", "error"),
    [
        pytest.param("refuse", RefusedError, id="refused before anything moved"),
        pytest.param("fail", FailedError, id="failed midway"),
        pytest.param("crash", FailedError, id="crashed"),
    ],
)
async def test_an_error_reply_says_whether_anything_moved(
    nats: Client, say: str, error: type[Exception]
) -> None:
    contract = await _serve(nats)
    with pytest.raises(error) as caught:
        await Requester(nats).ask(contract, _question(say), 2)
    assert "secret" not in str(caught.value)


async def test_an_expired_question_is_not_carried_out(nats: Client) -> None:
    contract = await _serve(nats)
    with pytest.raises(RefusedError) as caught:
        await Requester(nats).ask(contract, _question("crash", expired=True), 2)
    assert caught.value.code is ErrorCode.DEADLINE_EXCEEDED


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[]", b'{"say":1,"deadline_us":1}', b'{"say":"x"}', b"\xff\xfe"]
)
async def test_a_wrong_message_gets_an_error_and_not_silence(nats: Client, payload: bytes) -> None:
    contract = await _serve(nats)
    answer = await nats.request(contract.subject, payload, timeout=2)
    assert answer.headers is not None
    assert answer.headers["Nats-Service-Error-Code"] == ErrorCode.INVALID_MESSAGE


async def test_no_reply_in_time_is_an_unknown_outcome(nats: Client) -> None:
    contract = await _serve(nats)
    with pytest.raises(NoReplyError):
        await Requester(nats).ask(contract, _question("hang"), 0.05)


async def test_a_slow_question_does_not_hold_up_the_next(nats: Client) -> None:
    contract = await _serve(nats)
    hanging = asyncio.create_task(Requester(nats).ask(contract, _question("hang"), 5))
    assert await Requester(nats).ask(contract, _question("quick"), 2) == Answer(said="quick")
    hanging.cancel()


async def test_beyond_its_bound_a_server_refuses(nats: Client) -> None:
    contract = await _serve(nats, max_in_flight=1)
    hanging = asyncio.create_task(Requester(nats).ask(contract, _question("hang"), 5))
    await flushed(nats)
    with pytest.raises(RefusedError) as caught:
        await Requester(nats).ask(contract, _question("quick"), 2)
    assert caught.value.code is ErrorCode.OVERLOADED
    hanging.cancel()


async def test_without_a_server_nothing_is_sent_later(own_servers: Stack) -> None:
    back = asyncio.Event()
    settings = nats_settings(own_servers.servers)
    async with connection(settings, "test", on_reconnected=back.set) as client:
        contract = await _serve(client)
        await asyncio.to_thread(own_servers.stop, "nats")
        async with asyncio.timeout(15):
            while client.is_connected:  # until it notices, a question may have left
                await asyncio.sleep(0.01)
        with pytest.raises(DisconnectedError):
            await Requester(client).ask(contract, _question("hello"), 5)
        await asyncio.to_thread(own_servers.start, "nats")
        async with asyncio.timeout(15):
            await back.wait()
        assert await Requester(client).ask(contract, _question("again"), 5) == Answer(said="again")
