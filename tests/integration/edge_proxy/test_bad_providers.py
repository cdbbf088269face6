"""Providers that send what nobody should: memory stays bounded, and nothing is silently free."""

import gzip
import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from integration.edge_proxy.raw_provider import HEAD, Conversation, RawProvider, raw_provider
from integration.edge_proxy.test_clients_leave import idle
from integration.edge_proxy.world import CHAT, World, asked
from integration.edge_proxy.world import world as new_world

from contracts.inference import Outcome, UsageSource
from edge_proxy.domain.usage import ABSURD_TOKENS
from quotagate.stack import Stack

MIB = 1024**2
SENT_BYTES = 256 * MIB
ROOM_BYTES = 96 * MIB
"""What an edge may need on top, whatever a provider sends: far less than what is sent here."""
STREAM = {"stream": True}
PIECE = b"x" * MIB
OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"content-length: %d\r\n\r\n"


@pytest.fixture(scope="module")
async def raw() -> AsyncIterator[RawProvider]:
    async with raw_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
async def own(
    module_servers: Stack, raw: RawProvider, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    """A world of which only the edge's bounds on answers are smaller than they are by default."""
    settings = {"QUOTAGATE_MAX_ANSWER_BYTES": str(8 * MIB)}
    folder: Path = tmp_path_factory.mktemp("edge")
    async with new_world(module_servers.servers, folder, raw.address, settings=settings) as world:
        assert (await world.ask(world.team())).status_code == 200
        yield world


def bomb() -> bytes:
    """Return a small body that decompresses to much."""
    return gzip.compress(bytes(SENT_BYTES), compresslevel=1)


def much() -> Iterator[bytes]:
    return itertools.repeat(PIECE, SENT_BYTES // MIB)


def endless_head() -> Iterator[bytes]:
    yield OK
    for number in range(SENT_BYTES // MIB):
        yield b"x-%d: %b\r\n" % (number, PIECE)


def chunked(head: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    for piece in pieces:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


WHOLE = {
    "a head without end": (endless_head, "provider_disconnected", None),
    "a body without end": (
        lambda: itertools.chain([OK + LENGTH % SENT_BYTES], much()),
        "provider_answer_too_large",
        200,
    ),
    "a small body that grows": (
        lambda: iter([OK + b"content-encoding: gzip\r\n" + LENGTH % len(bomb()) + bomb()]),
        "provider_answer_too_large",
        200,
    ),
    "an error page without end": (
        lambda: itertools.chain(
            [b"HTTP/1.1 500 Oh\r\ncontent-type: text/html\r\n" + LENGTH % SENT_BYTES], much()
        ),
        "provider_failed",
        500,
    ),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_what_is_no_answer_is_not_collected(own: World, raw: RawProvider, name: str) -> None:
    pieces, code, status = WHOLE[name]
    team = own.team()

    async def script(conversation: Conversation) -> None:
        for piece in pieces():
            await conversation.say(piece)

    raw.script = script
    before = own.edge.peak_bytes()
    answer = await own.ask(team, model="raw")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, code)
    assert own.edge.peak_bytes() - before < ROOM_BYTES
    record = await own.records.one(team.team_id)
    assert (record.outcome, record.status_code) == (Outcome.FAILED, status)
    assert record.usage_source is UsageSource.MISSING
    await idle(own)


def one_line() -> Iterator[bytes]:
    return itertools.chain([b"data: "], much())


def lines_of_nothing() -> Iterator[bytes]:
    return itertools.repeat((b"x" * 1023 + b"\n") * 1024, SENT_BYTES // MIB)


def held_back() -> Iterator[bytes]:
    """What looks like a stream's end, again and again: it is held back until one is the last."""
    finish = b'data: {"choices":[{"finish_reason":"stop"}],"usage":{"x":"%b"}}\n\n'
    return itertools.repeat(finish % PIECE, SENT_BYTES // MIB)


@pytest.mark.parametrize("events", [one_line, lines_of_nothing, held_back])
async def test_a_stream_is_never_collected(own: World, raw: RawProvider, events: object) -> None:
    assert callable(events)
    team = own.team()

    async def script(conversation: Conversation) -> None:
        for piece in chunked(HEAD, events()):
            await conversation.say(piece)

    raw.script = script
    before = own.edge.peak_bytes()
    body = asked(team, model="raw", more=STREAM)
    passed_bytes = 0
    async with own.http.stream("POST", CHAT, headers=team.headers, json=body) as answer:
        assert answer.status_code == httpx.codes.OK
        async for piece in answer.aiter_raw():
            passed_bytes += len(piece)
    # The client gets the bytes that it would have got.
    assert passed_bytes >= SENT_BYTES
    assert own.edge.peak_bytes() - before < ROOM_BYTES
    record = await own.records.one(team.team_id)
    assert record.usage_source is UsageSource.MISSING
    await idle(own)


@pytest.mark.parametrize("more", [{}, STREAM], ids=["whole", "stream"])
async def test_absurd_usage_is_kept_for_a_person_and_charged_to_nobody(
    own: World, more: dict[str, bool]
) -> None:
    team = own.team()
    answer = await own.ask(team, more=more, usage_shape="absurd")
    assert answer.status_code == httpx.codes.OK
    record = await own.records.one(team.team_id)
    assert (record.outcome, record.usage_source) == (Outcome.SUCCEEDED, UsageSource.PROVIDER)
    assert record.usage is not None
    assert record.usage.output > ABSURD_TOKENS
    assert record.usage_reported is not None
    assert str(10**10) in record.usage_reported
    assert own.stand_ins.postflights_of(team.team_id) == []
