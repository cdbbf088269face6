"""The running system and the catalogue agree: who serves what, and what a wrong message gets."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from nats.aio.client import Client

from contracts.catalogue import EVENTS, REQUESTS, STREAMS
from contracts.contract import TRACEPARENT, Event, RequestReply, Stream
from contracts.errors import ErrorCode
from kit.bus.connection import connection, flushed
from kit.bus.streams import check_streams, config
from kit.settings import NatsSettings, load
from quotagate.stack import Stack


@pytest.fixture(scope="module")
async def nats(stack: Stack) -> AsyncIterator[Client]:
    settings = load(
        NatsSettings,
        {
            "QUOTAGATE_PORT": "0",
            "QUOTAGATE_NATS_URL": stack.servers.nats_url,
            "QUOTAGATE_NATS_USER": "operator",
            "QUOTAGATE_NATS_PASSWORD": stack.servers.nats_passwords["operator"],
        },
    )
    async with connection(settings, "contract-tests") as client:
        yield client


async def _announced(nats: Client) -> list[dict[str, Any]]:
    """Return what every service on the bus says of itself."""
    inbox = nats.new_inbox()
    answers = await nats.subscribe(inbox)
    await nats.publish("$SRV.INFO", b"", reply=inbox)
    infos: list[dict[str, Any]] = []
    try:
        while True:
            infos.append(json.loads((await answers.next_msg(timeout=0.5)).data))
    except TimeoutError:
        return infos
    finally:
        await answers.unsubscribe()


async def test_every_subject_is_served_by_whom_the_catalogue_says(nats: Client) -> None:
    served = {
        endpoint["subject"]: (info["name"], endpoint["queue_group"])
        for info in await _announced(nats)
        for endpoint in info["endpoints"]
    }
    assert served == {
        contract.subject: (contract.served_by, contract.served_by) for contract in REQUESTS
    }


@pytest.mark.parametrize("contract", REQUESTS, ids=lambda contract: contract.subject)
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="broken JSON"),
        pytest.param(b"[1]", id="another type"),
        pytest.param(b'{"team_id":"a{b}","key_id":"a.b"}', id="bad ids"),
        pytest.param(b"\xff\x00", id="not text"),
    ],
)
async def test_a_wrong_message_gets_an_error_reply(
    nats: Client, contract: RequestReply[Any, Any], payload: bytes
) -> None:
    reply = await nats.request(contract.subject, payload, timeout=2)
    code = (reply.headers or {}).get("Nats-Service-Error-Code")
    if contract.request.__struct_fields__ == () and payload.startswith(b"{") and len(payload) > 1:
        # A question without fields ignores whatever a later release adds to it.
        assert code is None
    else:
        assert code == ErrorCode.INVALID_MESSAGE


@pytest.mark.parametrize(
    "traceparent",
    [
        pytest.param("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", id="a span"),
        pytest.param("nonsense", id="nonsense"),
    ],
)
@pytest.mark.parametrize("contract", REQUESTS, ids=lambda contract: contract.subject)
async def test_a_trace_context_changes_no_answer(
    nats: Client, contract: RequestReply[Any, Any], traceparent: str
) -> None:
    """Each is asked something wrong, which moves nothing; a question without fields is right."""
    plain = await nats.request(contract.subject, b'{"team_id":1,"key_id":1}', timeout=2)
    traced = await nats.request(
        contract.subject,
        b'{"team_id":1,"key_id":1}',
        timeout=2,
        headers={TRACEPARENT: traceparent},
    )
    assert (traced.headers, traced.data) == (plain.headers, plain.data)


@pytest.mark.parametrize("wanted", STREAMS, ids=lambda stream: stream.name)
async def test_every_stream_is_there_as_the_catalogue_says(nats: Client, wanted: Stream) -> None:
    await check_streams(nats, [wanted])
    found = (await nats.jetstream().stream_info(wanted.name)).config
    expected = config(wanted, replicas=1)
    assert (found.subjects, found.retention, found.max_bytes, found.duplicate_window) == (
        expected.subjects,
        expected.retention,
        expected.max_bytes,
        expected.duplicate_window,
    )


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.subject)
async def test_only_who_emits_an_event_may_publish_it(stack: Stack, event: Event[Any]) -> None:
    """Each service's NATS user is tried: those of the catalogue may, the others are refused."""
    allowed = await asyncio.gather(
        *(_may_publish(stack, user, event) for user in sorted(stack.servers.nats_passwords))
    )
    may = {
        user for user, yes in zip(sorted(stack.servers.nats_passwords), allowed, strict=True) if yes
    }
    assert may - {"operator"} == set(event.emitted_by)


async def _may_publish(stack: Stack, user: str, event: Event[Any]) -> bool:
    violations: list[str] = []

    async def note(error: Exception) -> None:
        violations.append(str(error))

    client = Client()
    await client.connect(
        stack.servers.nats_url,
        user=user,
        password=stack.servers.nats_passwords[user],
        error_cb=note,
        allow_reconnect=False,
    )
    try:
        # An empty message with an expectation that can't hold: permitted, and never stored.
        await client.publish(
            event.subject_for("nobody" if event.parameter else None),
            b"",
            headers={"Nats-Expected-Last-Msg-Id": "no such message"},
        )
        await flushed(client)
    finally:
        await client.close()
    return not any("permissions violation" in violation.lower() for violation in violations)
