"""Requests that are too large, too slow or no requests: bounded, and told why."""

import asyncio
import json

import pytest
from integration.edge_proxy.world import CHAT, Team, World, asked

from kit.http_connection import MAX_HEAD_BYTES

LIMIT_BYTES = 200_000


def head(team: Team, *lines: str) -> bytes:
    text = "".join(f"{line}\r\n" for line in lines)
    key = f"authorization: Bearer {team.key}\r\n"
    return f"POST {CHAT} HTTP/1.1\r\nhost: edge\r\n{key}{text}\r\n".encode()


async def said(world: World, *parts: bytes) -> bytes:
    """Send parts whether or not anybody reads them, then return all that was answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", world.edge.port)
    for part in parts:
        writer.write(part)
        await writer.drain()
    answer = await reader.read()
    writer.close()
    return answer


def error_of(answer: bytes) -> tuple[int, str]:
    status, _, rest = answer.partition(b"\r\n")
    _, _, body = rest.partition(b"\r\n\r\n")
    return int(status.split()[1]), json.loads(body)["error"]["code"]


TOO_LARGE = (413, "request_too_large")


async def test_a_body_at_the_limit_passes(world: World) -> None:
    team = world.team()
    body = asked(team)
    body["padding"] = "x" * (LIMIT_BYTES - len(json.dumps(body)) - len(', "padding": ""'))
    content = json.dumps(body).encode()
    assert len(content) == LIMIT_BYTES
    answer = await world.http.post(CHAT, headers=team.headers, content=content)
    assert answer.status_code == 200
    refused = await world.http.post(CHAT, headers=team.headers, content=content + b" ")
    assert (refused.status_code, refused.json()["error"]["code"]) == TOO_LARGE
    assert len(world.stand_ins.preflights_of(team.team_id)) == 1


async def test_a_client_that_sends_before_it_reads_gets_to_read(world: World) -> None:
    """A connection that is closed on unread bytes is reset, and the answer lost."""
    team = world.team()
    body = b"x" * 5_000_000
    answer = await said(world, head(team, f"content-length: {len(body)}"), body)
    assert error_of(answer) == TOO_LARGE
    assert b"connection: close" in answer


async def test_a_chunked_body_has_the_same_limit(world: World) -> None:
    team = world.team()
    chunk = b"186a0\r\n" + b"x" * 100_000 + b"\r\n"
    answer = await said(
        world, head(team, "transfer-encoding: chunked"), *[chunk] * 20, b"0\r\n\r\n"
    )
    assert error_of(answer) == TOO_LARGE


async def test_a_client_that_asks_first_sends_nothing(world: World) -> None:
    team = world.team()
    answer = await said(world, head(team, "content-length: 999999999", "expect: 100-continue"))
    assert error_of(answer) == TOO_LARGE
    assert b"100 Continue" not in answer


async def test_a_client_that_asks_first_and_may(world: World) -> None:
    team = world.team()
    content = json.dumps(asked(team)).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", world.edge.port)
    writer.write(head(team, f"content-length: {len(content)}", "expect: 100-continue"))
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(content)
    assert (await reader.readuntil(b"\r\n")) == b"HTTP/1.1 200 OK\r\n"
    writer.close()


@pytest.mark.parametrize("parts", [[b"{"], []], ids=["it begins and stops", "it never begins"])
async def test_a_slow_sender_is_given_up(world: World, parts: list[bytes]) -> None:
    team = world.team()
    reader, writer = await asyncio.open_connection("127.0.0.1", world.edge.port)
    writer.writelines([head(team, "content-length: 1000"), *parts])
    await writer.drain()
    answer = await reader.readuntil(b"}}")
    assert error_of(answer) == (408, "request_timeout")
    writer.close()
    assert world.stand_ins.preflights_of(team.team_id) == []


async def test_a_stranger_sends_no_body(world: World) -> None:
    """Who has no key isn't read: the refusal comes before the body does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", world.edge.port)
    writer.write(b"POST %b HTTP/1.1\r\nhost: e\r\ncontent-length: 100000\r\n\r\n" % CHAT.encode())
    assert error_of(await reader.readuntil(b"}}")) == (401, "invalid_api_key")
    writer.close()


@pytest.mark.parametrize(
    "head_bytes",
    [
        pytest.param(b"POST / HTTP/1.1\r\nx: " + b"y" * 5 * MAX_HEAD_BYTES, id="one line"),
        pytest.param(b"POST / HTTP/1.1\r\n" + b"x: y\r\n" * MAX_HEAD_BYTES, id="many lines"),
        pytest.param(b"POST /" + b"y" * 5 * MAX_HEAD_BYTES, id="the address"),
    ],
)
async def test_a_head_without_end(world: World, head_bytes: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", world.edge.port)
    writer.write(head_bytes)
    answer = b""
    try:
        answer = await reader.read()
    except ConnectionResetError:
        pass  # it was closed with bytes on their way: bounded, which is what counts
    assert answer[:12] in (b"HTTP/1.1 431", b"")
    writer.close()


async def test_two_requests_on_one_connection(world: World) -> None:
    team = world.team()
    content = json.dumps(asked(team)).encode()
    request = head(team, f"content-length: {len(content)}") + content
    reader, writer = await asyncio.open_connection("127.0.0.1", world.edge.port)
    writer.write(request + request)
    for _ in range(2):
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200")
        (length,) = [line for line in answer.split(b"\r\n") if line.startswith(b"content-length: ")]
        await reader.readexactly(int(length.partition(b": ")[2]))
    writer.close()
    assert len(await world.records.some(team.team_id, 2)) == 2


async def test_a_request_that_is_no_http(world: World) -> None:
    answer = await said(world, b"\x16\x03\x01 hello\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")


async def test_smuggled_lengths_are_refused(world: World) -> None:
    team = world.team()
    both = head(team, "content-length: 3", "transfer-encoding: chunked")
    assert (await said(world, both + b"0\r\n\r\n")).startswith(b"HTTP/1.1 400")
    twice = head(team, "content-length: 3", "content-length: 4")
    assert (await said(world, twice + b"{}")).startswith(b"HTTP/1.1 400")
