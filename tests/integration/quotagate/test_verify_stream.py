"""Verify against JetStream: what settlement acknowledged is stored, or a dead letter."""

from base64 import b64encode
from collections.abc import AsyncIterator

import pytest
from integration.quotagate.scratch import Scratch
from integration.quotagate.wire import acknowledge, empty_streams, publish, publish_bytes, record
from integration.tables.rows import add_record
from nats.aio.client import Client

from contracts.contract import encode
from contracts.dead import DEAD_LETTERED, DeadLetter
from contracts.inference import INFERENCE_RECORDED, INFERENCE_RECORDS
from kit.bus.publishing import Publisher
from kit.redis import connect
from quotagate.verify import Kind, Options, Report, verify
from redis_scripts.keys import team_keys

OPTIONS = Options(with_cache=False)


@pytest.fixture
async def nats(scratch: Scratch) -> AsyncIterator[Client]:
    async with empty_streams(scratch.settings) as client:
        yield client


async def _store(scratch: Scratch, inference_id: str, **changes: object) -> None:
    await add_record(
        scratch.engine("settlement"), "a", inference_id=inference_id, state="HELD",
        held_reason="x", **changes,
    )  # fmt: skip


async def _verified(scratch: Scratch, options: Options = OPTIONS) -> Report:
    report = await verify(scratch.settings, options)
    assert report.untold == []
    return report


async def test_stored_records_are_proved(scratch: Scratch, nats: Client) -> None:
    for number in range(3):
        await publish(nats, record("a", f"stored-{number}"))
        await _store(scratch, f"stored-{number}", stream_sequence=number + 1)
    await acknowledge(nats, 3)
    report = await _verified(scratch)
    assert report.counts == {}
    assert report.figures["stream_records"] == 3


async def test_an_acknowledged_record_that_is_not_stored_is_found(
    scratch: Scratch, nats: Client
) -> None:
    await publish(nats, record("a", "stored"))
    await _store(scratch, "stored")
    await publish(nats, record("a", "lost", attempt_no=2))
    await acknowledge(nats, 2)
    report = await _verified(scratch)
    assert report.counts == {Kind.RECORD_NOT_STORED: 1}
    assert report.findings[0].team_id == "a"
    assert report.findings[0].subject == "stream sequence 2 (lost:2)"


async def test_another_attempt_of_the_inference_is_another_record(
    scratch: Scratch, nats: Client
) -> None:
    await publish(nats, record("a", "inference", attempt_no=2))
    await _store(scratch, "inference", attempt_no=1)
    await acknowledge(nats, 1)
    assert (await _verified(scratch)).counts == {Kind.RECORD_NOT_STORED: 1}


async def test_a_record_that_was_published_again_counts_as_stored(
    scratch: Scratch, nats: Client
) -> None:
    """Beyond the duplicate window the stream has it twice, and the database once."""
    await publish_bytes(nats, "a", b"{}", "filler")
    await publish(nats, record("a", "twice"))
    await _store(scratch, "twice", stream_sequence=99)
    await _store(scratch, "filler", stream_sequence=1)
    await acknowledge(nats, 2)
    assert (await _verified(scratch)).counts == {}


async def test_a_record_that_was_published_again_without_its_id_counts_as_stored(
    scratch: Scratch, nats: Client
) -> None:
    await publish(nats, record("a", "twice"))
    again = encode(record("a", "twice"))
    await nats.jetstream().publish(INFERENCE_RECORDED.subject_for("a"), again)
    await nats.jetstream().publish(INFERENCE_RECORDED.subject_for("a"), b"no record")
    await _store(scratch, "twice", stream_sequence=1)
    await acknowledge(nats, 3)
    report = await _verified(scratch)
    assert report.counts == {Kind.RECORD_NOT_STORED: 1}
    assert report.findings[0].subject == "stream sequence 3 (no message id)"


async def test_what_settlement_has_not_acknowledged_is_not_looked_for(
    scratch: Scratch, nats: Client
) -> None:
    await publish(nats, record("a", "stored"))
    await _store(scratch, "stored")
    await acknowledge(nats, 1)
    await publish(nats, record("a", "on its way"))
    report = await _verified(scratch)
    assert report.counts == {}
    assert report.figures["stream_records"] == 1


async def test_a_dead_letter_is_not_missing(scratch: Scratch, nats: Client) -> None:
    await publish(nats, record("a", "stored"))
    await _store(scratch, "stored")
    sequence = await publish_bytes(nats, "a", b"no record", "poison")
    await acknowledge(nats, 2)
    assert (await _verified(scratch)).counts == {Kind.RECORD_NOT_STORED: 1}
    letter = DeadLetter(
        stream=INFERENCE_RECORDS.name,
        stream_sequence=sequence,
        subject=INFERENCE_RECORDED.subject_for("a"),
        consumer="settlement",
        reason="unreadable",
        payload_base64=b64encode(b"no record").decode(),
        failed_at_us=0,
    )
    await Publisher(nats).publish(DEAD_LETTERED, "settlement", letter, "letter", 5)
    report = await _verified(scratch)
    assert report.counts == {}
    assert report.figures["dead_letters"] == 1


async def test_thousands_of_records_are_read_in_batches(scratch: Scratch, nats: Client) -> None:
    for number in range(2_300):
        await nats.jetstream().publish(
            INFERENCE_RECORDED.subject_for("a"),
            b"{}",
            headers={"Nats-Msg-Id": f"many-{number}:1"},
        )
    await scratch.falsify(
        "CREATE TABLE one AS SELECT * FROM inference_record WHERE inference_id = 'a-held';"
        "INSERT INTO inference_record OVERRIDING SYSTEM VALUE"
        " SELECT (jsonb_populate_record(NULL::inference_record, to_jsonb(one)"
        " || jsonb_build_object('record_id', 1000 + n, 'inference_id', 'many-' || n))).*"
        " FROM one, generate_series(0, 2299) AS n WHERE n <> 2111"
    )
    await acknowledge(nats, 2_300)
    report = await _verified(scratch)
    assert report.counts == {Kind.RECORD_NOT_STORED: 1}
    assert report.findings[0].subject == "stream sequence 2112 (many-2111:1)"
    assert report.figures["stream_records"] == 2_300


async def test_reading_leaves_no_consumer_behind(scratch: Scratch, nats: Client) -> None:
    await publish(nats, record("a", "stored"))
    await _store(scratch, "stored")
    await acknowledge(nats, 1)
    await _verified(scratch)
    left = await nats.jetstream().consumers_info(INFERENCE_RECORDS.name)
    assert [consumer.name for consumer in left] == ["settlement"]


async def test_a_cached_balance_is_not_judged_while_records_wait_in_the_stream(
    scratch: Scratch, nats: Client
) -> None:
    """Its rough debit is applied; its charge comes when settlement does."""
    client = connect(scratch.settings)
    await client.set(team_keys("idle").balance, -5)
    await publish(nats, record("idle", "waits"))
    try:
        report = await _verified(scratch, Options(cache_wait_s=0))
        assert report.counts == {}
        assert "1 cached balances differ" in report.notes[0]
        await acknowledge(nats, 1)
        await _store(scratch, "waits")
        assert (await _verified(scratch, Options(cache_wait_s=0))).counts == {
            Kind.CACHED_BALANCE: 1
        }
    finally:
        await client.delete(team_keys("idle").balance)
        await client.aclose()


async def test_a_missing_stream_proves_nothing(scratch: Scratch, nats: Client) -> None:
    await nats.jetstream().delete_stream(INFERENCE_RECORDS.name)
    report = await verify(scratch.settings, OPTIONS)
    assert report.untold == ["nats: there is no stream INFERENCE_RECORDS"]


async def test_a_nats_that_does_not_answer_proves_nothing(scratch: Scratch) -> None:
    settings = scratch.settings.model_copy(update={"nats_url": "nats://127.0.0.1:1"})
    report = await verify(settings, OPTIONS)
    assert report.untold[0].startswith("nats:")
    assert report.figures["records"] == 9
