"""What the edge rests on in its HTTP client, seen at the level of bytes."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import pytest
from integration.edge_proxy.raw_provider import HEAD, Conversation, RawProvider, raw_provider

from edge_proxy.clients.provider import Exchange, ProviderClient
from edge_proxy.domain.routes import parse
from edge_proxy.domain.surroundings import Surroundings
from edge_proxy.errors import BrokenAnswerError, ProviderTimeoutError, UnreachableError

ROUTES = """
[providers.p]
adapter = "openai"
base_url = "{address}/v1"
connect_s = 1
{more}
[models.m]
deployments = [{{ provider = "p", model = "m" }}]
"""


class Caller:
    """Makes exchanges with one raw provider."""

    def __init__(self, address: str, more: str = "") -> None:
        text = ROUTES.format(address=address, more=more)
        routes = parse(text, Surroundings(variables={}, read_file=lambda _: ""))
        (self._target,) = routes.models["m"].targets
        self.client = ProviderClient(routes.providers)

    def exchange(self) -> Exchange:
        return self.client.exchange(self._target, "/x", [("a", "b")], b"body")


@pytest.fixture
async def provider() -> AsyncIterator[RawProvider]:
    async with raw_provider() as provider:
        yield provider


@pytest.fixture
async def caller(provider: RawProvider) -> AsyncIterator[Caller]:
    caller = Caller(provider.address)
    yield caller
    await caller.client.close()


class Silence:
    """A script that says a part and then nothing, and tells when the other side has left."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = chunks
        self.begun = asyncio.Event()
        self.left = asyncio.Event()

    async def __call__(self, conversation: Conversation) -> None:
        if self._chunks:
            await conversation.say(HEAD)
        for chunk in self._chunks:
            await conversation.chunk(chunk)
        self.begun.set()
        await conversation.until_left()
        self.left.set()


async def answer_ok(conversation: Conversation) -> None:
    await conversation.say(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX-Twice: a\r\n\r\nok")


async def test_what_is_sent_and_what_comes_back(provider: RawProvider, caller: Caller) -> None:
    provider.script = answer_ok
    exchange = caller.exchange()
    await exchange.open()
    assert (exchange.status, exchange.headers["x-twice"]) == (200, "a")
    assert await exchange.whole(2) == b"ok"
    (conversation,) = provider.conversations
    assert conversation.head.startswith(b"POST /v1/x HTTP/1.1\r\n")
    assert b"\r\na: b\r\n" in conversation.head
    assert conversation.body == b"body"


async def test_a_proxy_of_the_environment_is_not_used(
    provider: RawProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    provider.script = answer_ok
    caller = Caller(provider.address)
    exchange = caller.exchange()
    await exchange.open()
    assert await exchange.whole(2) == b"ok"
    await caller.client.close()


async def test_a_named_proxy_is_used(provider: RawProvider) -> None:
    provider.script = answer_ok
    caller = Caller("http://nowhere.invalid", more=f'proxy = "{provider.address}"')
    exchange = caller.exchange()
    await exchange.open()
    assert await exchange.whole(2) == b"ok"
    (conversation,) = provider.conversations
    assert conversation.head.startswith(b"POST http://nowhere.invalid/v1/x HTTP/1.1\r\n")
    await caller.client.close()


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "http://nowhere.invalid"])
async def test_nobody_there(address: str) -> None:
    caller = Caller(address)
    with pytest.raises(UnreachableError):
        await caller.exchange().open()
    await caller.client.close()


async def test_a_tls_handshake_that_never_ends_is_no_connection(provider: RawProvider) -> None:
    # The raw provider waits for a head in clear.
    caller = Caller(provider.address.replace("http:", "https:"))
    with pytest.raises(UnreachableError):
        await caller.exchange().open()
    await caller.client.close()


async def test_hurried_before_the_head(provider: RawProvider, caller: Caller) -> None:
    provider.script = silence = Silence()
    exchange = caller.exchange()
    opening = asyncio.create_task(exchange.open())
    await silence.begun.wait()
    exchange.hurry(0)
    with pytest.raises(ProviderTimeoutError):
        await opening
    # The provider learns at once that nobody waits any more.
    await silence.left.wait()


async def test_hurried_in_the_body(provider: RawProvider, caller: Caller) -> None:
    provider.script = silence = Silence(b"one")
    exchange = caller.exchange()
    await exchange.open()
    assert await exchange.next() == b"one"
    waiting = asyncio.create_task(exchange.next())
    await silence.begun.wait()
    await asyncio.sleep(0)
    exchange.hurry(0)
    with pytest.raises(ProviderTimeoutError):
        await waiting
    await silence.left.wait()


async def test_hurry_never_gives_more_time(provider: RawProvider, caller: Caller) -> None:
    provider.script = Silence(b"one")
    exchange = caller.exchange()
    await exchange.open()
    await exchange.next()
    exchange.hurry(0)
    exchange.hurry(60)
    with pytest.raises(ProviderTimeoutError):
        await exchange.next()


async def test_closing_an_answer_that_was_not_read(provider: RawProvider, caller: Caller) -> None:
    provider.script = silence = Silence(b"one")
    exchange = caller.exchange()
    await exchange.open()
    await exchange.close()
    await silence.left.wait()


async def test_cancelling_reaches_the_provider(provider: RawProvider, caller: Caller) -> None:
    provider.script = silence = Silence()
    opening = asyncio.create_task(caller.exchange().open())
    await silence.begun.wait()
    opening.cancel()
    await asyncio.wait([opening])
    assert opening.cancelled()
    await silence.left.wait()


async def test_a_broken_answer_is_no_end(provider: RawProvider, caller: Caller) -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.say(HEAD)
        await conversation.chunk(b"one")

    provider.script = script
    exchange = caller.exchange()
    await exchange.open()
    assert await exchange.next() == b"one"
    with pytest.raises(BrokenAnswerError):
        await exchange.next()


async def said(provider: RawProvider, caller: Caller, answer: bytes) -> bytes:
    """Return the body that is read in an answer after which the provider leaves."""

    async def script(conversation: Conversation) -> None:
        await conversation.say(answer)

    provider.script = script
    exchange = caller.exchange()
    await exchange.open()
    return await exchange.whole(100)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        pytest.param(b"\r\nto the end", b"to the end", id="until the connection ends"),
        pytest.param(b"content-length: 0\r\n\r\n", b"", id="nothing"),
        pytest.param(
            b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\nt: u\r\n\r\n",
            b"abc",
            id="chunks, an extension, a trailer",
        ),
        pytest.param(
            b"content-encoding: GZIP\r\n\r\n" + gzip.compress(b"small"), b"small", id="gzip"
        ),
        pytest.param(
            b"content-encoding: deflate\r\n\r\n" + zlib.compress(b"small"), b"small", id="deflate"
        ),
    ],
)
async def test_bodies(provider: RawProvider, caller: Caller, answer: bytes, body: bytes) -> None:
    assert await said(provider, caller, b"HTTP/1.1 200 OK\r\n" + answer) == body


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab", id="shorter than it said"),
        pytest.param(HEAD + b"zz\r\n", id="no chunk"),
        pytest.param(HEAD + b"1\r\na\r\n", id="no last chunk"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b"small")[:-6],
            id="cut in its compression",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\n\r\nx", id="compressed as nobody asked"
        ),
        pytest.param(b"HTTP/1.1 101 Other\r\nupgrade: x\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-", id="cut in its head"),
    ],
)
async def test_broken_answers(provider: RawProvider, caller: Caller, answer: bytes) -> None:
    with pytest.raises(BrokenAnswerError):
        await said(provider, caller, answer)


class Twice:
    """A script that answers each request of a connection, with `more` behind the first answer."""

    def __init__(self, head: bytes, more: bytes = b"") -> None:
        self._answers = [head + b"\r\ncontent-length: 2\r\n\r\nok" + more]
        self._last = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

    async def __call__(self, conversation: Conversation) -> None:
        await conversation.say(self._answers.pop() if self._answers else self._last)
        await conversation.reader.readuntil(b"\r\n\r\nbody")
        await conversation.say(self._last)
        await conversation.until_left()


async def ask_twice(caller: Caller) -> None:
    for _ in range(2):
        exchange = caller.exchange()
        await exchange.open()
        assert await exchange.whole(2) == b"ok"
        await exchange.close()


@pytest.mark.parametrize(
    ("head", "more", "connections"),
    [
        pytest.param(b"HTTP/1.1 200 OK", b"", 1, id="kept"),
        pytest.param(
            b"HTTP/1.1 103 Hint\r\nx: y\r\n\r\nHTTP/1.1 200 OK", b"", 1, id="a hint before"
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\nconnection: close", b"", 2, id="closed by its word"),
        pytest.param(b"HTTP/1.0 200 OK", b"", 2, id="of an earlier HTTP"),
        pytest.param(b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK\r\n", 2, id="an answer too many"),
    ],
)
async def test_which_connections_are_used_again(
    provider: RawProvider, caller: Caller, head: bytes, more: bytes, connections: int
) -> None:
    provider.script = Twice(head, more)
    await ask_twice(caller)
    assert len(provider.conversations) == connections


async def test_what_has_arrived_comes_at_once(provider: RawProvider, caller: Caller) -> None:
    pieces = [b"%d" % number for number in range(50)]

    async def script(conversation: Conversation) -> None:
        await conversation.say(HEAD + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces))
        await conversation.chunk(b"")

    provider.script = script
    exchange = caller.exchange()
    await exchange.open()
    assert await exchange.next() == b"".join(pieces)
    assert await exchange.next() is None


async def test_an_unread_answer_waits_at_the_provider(
    provider: RawProvider, caller: Caller
) -> None:
    """Who doesn't read isn't buffered for: what piles up stays within the kernel's buffers."""
    sent_bytes = 0

    async def script(conversation: Conversation) -> None:
        nonlocal sent_bytes
        await conversation.say(HEAD)
        for _ in range(4_000):
            await conversation.chunk(b"x" * 65_536)
            sent_bytes += 65_536

    provider.script = script
    exchange = caller.exchange()
    await exchange.open()
    before = -1
    while before != sent_bytes:
        before = sent_bytes
        await asyncio.sleep(0.2)
    assert sent_bytes < 32 * 1024**2
    await exchange.close()
