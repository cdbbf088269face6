"""Dead letters on a real NATS server: listed, replayed once, dropped."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from integration.quotagate.wire import empty_streams, publish, record, replace_stream
from integration.services import ServiceProcess
from integration.tables.rows import new_name
from nats.aio.client import Client
from sqlalchemy import text

from contracts.contract import encode
from contracts.dead import DEAD_LETTERED, DEAD_LETTERS, DeadLetter, max_deliveries_subject
from contracts.inference import INFERENCE_RECORDED, INFERENCE_RECORDS
from kit.bus.consuming import Durable, Puller
from kit.bus.publishing import Publisher
from kit.bus.streams import config
from quotagate import stores
from quotagate.dead_letters import (
    Fate,
    Letter,
    NoSuchLetterError,
    drop,
    given_up,
    letter,
    letters,
    replay,
)
from quotagate.stack import Stack
from quotagate.stores import of_servers

_SUBJECT = INFERENCE_RECORDED.subject_for("a")


@pytest.fixture
async def nats(lab: Stack) -> AsyncIterator[Client]:
    async with empty_streams(of_servers(lab.servers)) as client:
        yield client


async def _die(
    client: Client, payload: bytes, *, sequence: int = 999, cut: bool = False, **changes: str
) -> Letter:
    """Keep a dead letter as a service does."""
    died = DeadLetter(
        stream=INFERENCE_RECORDS.name,
        stream_sequence=sequence,
        subject=changes.get("subject", _SUBJECT),
        consumer="settlement",
        reason=changes.get("reason", "unreadable: it is"),
        payload_base64=b64encode(payload).decode(),
        payload_cut=cut,
        failed_at_us=1,
    )
    ack = await Publisher(client).publish(DEAD_LETTERED, "settlement", died, new_name("id"), 5)
    return await letter(client, ack.seq)


async def _all(client: Client) -> list[tuple[int, bytes]]:
    """Return the number of each letter and what it says."""
    return [(found.number, found.raw) async for found in letters(client)]


def _as_listed(*known: Letter) -> list[tuple[int, bytes]]:
    return [(each.number, each.raw) for each in known]


async def _stream(client: Client) -> list[tuple[str, bytes, str]]:
    """Return subject, payload and message id of what the stream of records holds."""
    jetstream = client.jetstream()
    state = (await jetstream.stream_info(INFERENCE_RECORDS.name)).state
    found = []
    for sequence in range(state.first_seq, state.last_seq + 1):
        message = await jetstream.get_msg(INFERENCE_RECORDS.name, sequence)
        headers = message.headers or {}
        found.append((message.subject or "", message.data or b"", headers.get("Nats-Msg-Id", "")))
    return found


async def _made_anew(client: Client, duplicate_window_s: float = 600) -> None:
    """Empty the stream of records; the least window that the server takes is 0.1 s."""
    made = config(INFERENCE_RECORDS, replicas=1).evolve(duplicate_window=duplicate_window_s)
    await replace_stream(client, INFERENCE_RECORDS.name, made)


async def _replay_when_forgotten(client: Client, dead: Letter) -> Fate:
    async with asyncio.timeout(20):
        while (result := await replay(client, dead)).fate is Fate.REMEMBERED:
            await asyncio.sleep(0.05)
    return result.fate


async def test_letters_are_listed_in_their_order(nats: Client) -> None:
    first = await _die(nats, b"one")
    second = await _die(nats, b"two", reason="refused: by hand")
    assert await _all(nats) == _as_listed(first, second)
    assert (first.payload, second.payload) == (b"one", b"two")


async def test_a_replayed_record_goes_where_it_came_from_under_its_own_id(nats: Client) -> None:
    inference = record("a", "replayed", attempt_no=2)
    dead = await _die(nats, encode(inference))
    assert (await replay(nats, dead)).fate is Fate.REPLAYED
    assert await _stream(nats) == [(_SUBJECT, encode(inference), "replayed:2")]
    assert await _all(nats) == []


async def test_a_letter_that_the_stream_remembers_is_kept_until_it_forgets(nats: Client) -> None:
    inference = record("a", "remembered")
    dead = await _die(nats, encode(inference), sequence=await publish(nats, inference))
    assert (await replay(nats, dead)).fate is Fate.REMEMBERED
    assert await _all(nats) == _as_listed(dead)
    await _made_anew(nats)
    assert (await replay(nats, dead)).fate is Fate.REPLAYED
    assert await _stream(nats) == [(_SUBJECT, encode(inference), "remembered:1")]
    assert await _all(nats) == []


@pytest.mark.parametrize(
    ("payload", "message_id"),
    [
        pytest.param(
            b'{"inference_id": "new", "attempt_no": 3, "x": 1}', "new:3", id="a newer one"
        ),
        pytest.param(b"\xff no JSON", "dead:INFERENCE_RECORDS:999", id="bytes"),
        pytest.param(b'{"attempt_no": "x"}', "dead:INFERENCE_RECORDS:999", id="another message"),
    ],
)
async def test_the_message_id_is_what_can_be_known(
    nats: Client, payload: bytes, message_id: str
) -> None:
    await replay(nats, await _die(nats, payload))
    assert await _stream(nats) == [(_SUBJECT, payload, message_id)]


async def test_the_message_id_of_what_is_no_record_is_asked_of_its_stream(nats: Client) -> None:
    await _made_anew(nats, duplicate_window_s=0.1)
    ack = await nats.jetstream().publish(_SUBJECT, b"broken", headers={"Nats-Msg-Id": "its own"})
    dead = await _die(nats, b"broken", sequence=ack.seq)
    assert await _replay_when_forgotten(nats, dead) is Fate.REPLAYED
    assert [message_id for *_, message_id in await _stream(nats)] == ["its own", "its own"]


async def test_a_message_that_was_cut_is_fetched_whole(nats: Client) -> None:
    await _made_anew(nats, duplicate_window_s=0.1)
    whole = encode(record("a", "large"))
    sequence = await publish(nats, record("a", "large"))
    dead = await _die(nats, whole[:10], sequence=sequence, cut=True)
    assert await _replay_when_forgotten(nats, dead) is Fate.REPLAYED
    assert [payload for _, payload, _ in await _stream(nats)] == [whole, whole]


async def test_a_message_that_was_cut_and_is_gone_is_kept_as_it_is(nats: Client) -> None:
    dead = await _die(nats, b"the begin", cut=True)
    assert (await replay(nats, dead)).fate is Fate.INCOMPLETE
    assert await _all(nats) == _as_listed(dead)


async def test_a_subject_that_is_not_the_stream_s_is_refused(nats: Client) -> None:
    dead = await _die(nats, b"x", subject="quota.v1.control.price.changed")
    assert (await replay(nats, dead)).fate is Fate.REFUSED
    assert await _all(nats) == _as_listed(dead)
    assert (await nats.jetstream().stream_info("CONTROL_EVENTS")).state.messages == 0


async def test_what_is_no_dead_letter_can_be_listed_and_dropped(nats: Client) -> None:
    ack = await nats.jetstream().publish(DEAD_LETTERED.subject_for("settlement"), b"not ours")
    found = await letter(nats, ack.seq)
    assert (found.content, found.raw) == (None, b"not ours")
    assert (await replay(nats, found)).fate is Fate.UNREADABLE
    await drop(nats, found)
    assert await _all(nats) == []


async def test_a_letter_that_is_not_there_is_an_error(nats: Client) -> None:
    with pytest.raises(NoSuchLetterError):
        await letter(nats, 5)


async def test_what_the_server_gave_up_is_listed_until_settlement_has_looked(nats: Client) -> None:
    durable = Durable(
        stream=INFERENCE_RECORDS.name,
        name="settlement",
        subjects=(INFERENCE_RECORDED.wildcard,),
        ack_wait_s=0.1,
        max_deliver=1,
        max_ack_pending=10,
    )
    sequence = await publish(nats, record("a", "given up"))
    puller = Puller(nats, durable)
    await puller.open()
    assert len(await puller.fetch(1, 5)) == 1
    async with asyncio.timeout(20):
        while not (found := await given_up(nats, set())):
            await puller.fetch(1, 0.1)
    await puller.close()
    assert [(each.stream_sequence, each.consumer, each.deliveries) for each in found] == [
        (sequence, "settlement", 1)
    ]
    assert await given_up(nats, {(INFERENCE_RECORDS.name, sequence)}) == []
    with pytest.raises(NoSuchLetterError, match="advisory"):
        await letter(nats, found[0].number)
    looking = Puller(
        nats,
        Durable(
            stream=DEAD_LETTERS.name,
            name="settlement-given-up",
            subjects=(max_deliveries_subject(INFERENCE_RECORDS.name, "settlement"),),
            ack_wait_s=30,
            max_deliver=-1,
            max_ack_pending=10,
        ),
    )
    await looking.open()
    for message in await looking.fetch(1, 5):
        await looking.ack(message)
    await looking.close()
    assert await given_up(nats, set()) == []


async def test_settlement_stores_what_is_replayed_once(
    lab: Stack, nats: Client, tmp_path: Path
) -> None:
    await _made_anew(nats, duplicate_window_s=0.1)
    inference = record("a", new_name("inference"))
    poison = await _die(nats, b"no record at all")
    dead = await _die(nats, encode(inference))
    settlement = ServiceProcess(lab.servers, "settlement", tmp_path)
    await settlement.start_ready()
    try:
        assert (await replay(nats, dead)).fate is Fate.REPLAYED
        again = await _die(nats, encode(inference))
        assert await _replay_when_forgotten(nats, again) is Fate.REPLAYED
        await settlement.becomes_more('quotagate_records_consumed_total{outcome="known"}')
    finally:
        await settlement.stop()
    async with stores.database(of_servers(lab.servers)) as engine, engine.connect() as connection:
        stored = await connection.scalar(
            text("SELECT count(*) FROM inference_record WHERE inference_id = :id"),
            {"id": inference.inference_id},
        )
    assert stored == 1
    assert await _all(nats) == _as_listed(poison)
