"""Each service may do on the bus and in Valkey what its work needs, and no more."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import nats
import pytest
from nats.aio.client import Client
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

from contracts.catalogue import EVENTS, REQUESTS
from quotagate.access.nats import USES
from quotagate.stack import Servers


@asynccontextmanager
async def _connected(servers: Servers, user: str) -> AsyncIterator[tuple[Client, list[str]]]:
    """Connect as a service; the list collects the server's complaints."""
    complaints: list[str] = []

    async def complain(error: Exception) -> None:
        complaints.append(str(error))

    client = await nats.connect(
        servers.nats_url,
        user=user,
        password=servers.nats_passwords[user],
        inbox_prefix=f"_INBOX.{user}",
        error_cb=complain,
    )
    try:
        yield client, complaints
    finally:
        await client.close()


@pytest.mark.parametrize("service", sorted(USES))
async def test_a_service_may_serve_emit_and_ask_what_is_its_own(
    servers: Servers, service: str
) -> None:
    async with _connected(servers, service) as (client, complaints):
        for request in REQUESTS:
            if request.served_by == service:
                await client.subscribe(request.subject, queue=service)
        for event in USES[service].hears:
            await client.subscribe(event.wildcard)
        for event in EVENTS:
            if service in event.emitted_by:
                await client.publish(event.subject_for("x"), b"{}")
        for question in USES[service].asks:
            await client.publish(question.subject, b"{}")
        await client.flush()
    assert complaints == []


@pytest.mark.parametrize("service", sorted(USES))
async def test_a_service_may_not_answer_or_emit_for_others(servers: Servers, service: str) -> None:
    async with _connected(servers, service) as (client, complaints):
        expected = 0
        for request in REQUESTS:
            if request.served_by != service:
                await client.subscribe(request.subject)
                expected += 1
        for event in EVENTS:
            if service not in event.emitted_by:
                await client.publish(event.subject_for("x"), b"{}")
                expected += 1
        await _until(lambda: len(complaints) >= expected)
    assert all("permissions violation" in complaint for complaint in complaints)


@pytest.mark.parametrize("service", sorted(USES))
@pytest.mark.parametrize(
    "subject",
    [
        pytest.param("$JS.API.STREAM.DELETE.INFERENCE_RECORDS", id="delete a stream"),
        pytest.param("$JS.API.CONSUMER.DELETE.CONTROL_EVENTS.tier-cache", id="delete a consumer"),
        pytest.param("_INBOX.admission.x", id="answer unasked"),
        pytest.param("anything.else", id="anything else"),
    ],
)
async def test_no_service_may_publish(servers: Servers, service: str, subject: str) -> None:
    async with _connected(servers, service) as (client, complaints):
        await client.publish(subject, b"{}")
        await _until(lambda: bool(complaints))
    assert "permissions violation" in complaints[0]


async def test_no_service_may_read_another_s_answers(servers: Servers) -> None:
    async with _connected(servers, "admission") as (client, complaints):
        await client.subscribe("_INBOX.edge-proxy.>")
        await client.subscribe("_INBOX.>")
        await _until(lambda: len(complaints) == 2)


async def test_nobody_connects_without_a_password(servers: Servers) -> None:
    address = urlsplit(servers.nats_url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(b'CONNECT {"verbose": false}\r\nPING\r\n')
        answer = await asyncio.wait_for(reader.read(), timeout=10)
    finally:
        writer.close()
        await writer.wait_closed()
    assert b"-ERR 'Authorization Violation'" in answer


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.01)


Forbidden = Callable[[Redis], Coroutine[Any, Any, Any]]

FORBIDDEN = [
    pytest.param(lambda redis: redis.get("other:key"), id="read another key"),
    pytest.param(lambda redis: redis.flushall(), id="flush"),
    pytest.param(lambda redis: redis.config_set("maxmemory-policy", "allkeys-lru"), id="configure"),
    pytest.param(lambda redis: redis.acl_list(), id="list users"),
    pytest.param(lambda redis: redis.shutdown(), id="shut down"),
    pytest.param(lambda redis: redis.script_flush(), id="forget scripts"),
    pytest.param(
        lambda redis: redis.eval("return redis.call('GET', KEYS[1])", 1, "other:key"),
        id="read another key in a script",
    ),
]


@pytest.mark.parametrize("service", ["admission", "settlement", "tier-cache"])
@pytest.mark.parametrize("forbidden", FORBIDDEN)
async def test_no_service_may_in_valkey(
    servers: Servers, service: str, forbidden: Forbidden
) -> None:
    async with Redis.from_url(servers.redis_urls[service]) as redis:
        with pytest.raises((NoPermissionError, ResponseError), match=r"(?i)permission"):
            await forbidden(redis)


@pytest.mark.parametrize("service", ["admission", "settlement", "tier-cache"])
async def test_a_service_may_run_scripts_on_the_teams_keys(servers: Servers, service: str) -> None:
    script = "redis.call('SET', KEYS[1], 1, 'PX', 1000) return redis.call('TIME')"
    async with Redis.from_url(servers.redis_urls[service]) as redis:
        assert await redis.eval(script, 1, f"quota:{{access-{service}}}:tier")
        assert await redis.config_get("maxmemory-policy")
        assert await redis.info("server")


async def test_nobody_uses_valkey_without_a_password(servers: Servers) -> None:
    address = f"redis://{servers.redis_url.rpartition('@')[2]}"
    async with Redis.from_url(address) as redis:
        with pytest.raises(AuthenticationError):
            await redis.ping()
