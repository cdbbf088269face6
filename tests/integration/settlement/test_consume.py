"""Records come off the stream once, however often and in whatever order they are delivered."""

import asyncio
import base64
import random
from decimal import Decimal

import msgspec
import pytest
from integration.settlement.books import Books
from integration.settlement.team import CallingTeam, Share
from nats.aio.client import Client

from contracts.contract import encode
from contracts.inference import INFERENCE_RECORDS, Outcome, UsageSource
from contracts.usage import Usage
from kit.ids import new_id
from settlement.handlers.settle import Settle
from settlement.settings import Settings
from settlement.store.records import RecordStore

CLASSES = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")
COPIED = (
    "inference_id", "attempt_no", "team_id", "api_key_id", "endpoint", "provider", "model_asked",
    "model_sent", "price_id", "tier_id", "usage_reported", "provider_request_id", "streaming",
    "client_gone", "status_code", "trace_id",
)  # fmt: skip


@pytest.fixture
def share(team: CallingTeam, client: Client, settings: Settings) -> Share:
    """The team's share of the stream, in batches smaller than the tests' streams."""
    return Share(team, client, settings.model_copy(update={"consume_batch_records": 7}))


async def test_every_message_five_times_and_out_of_order_is_one_record_and_one_charge(
    team: CallingTeam, share: Share, records: RecordStore, settle: Settle, books: Books
) -> None:
    inference_id = new_id()
    written = [
        *(team.record() for _ in range(20)),
        team.record(inference_id=inference_id, outcome=Outcome.FAILED, usage=None),
        team.record(inference_id=inference_id, attempt_no=2, usage=Usage(output=500)),
    ]
    deliveries = written * 5
    random.Random(1).shuffle(deliveries)  # noqa: S311 - the same disorder each time
    await team.publish(*deliveries)
    await share.finish([await share.consume(records) for _ in range(3)])
    await settle.once_around(asyncio.Event())
    states = await books.states(team.team_id)
    assert len(states) == len(written)
    assert states.pop((inference_id, 1)) == "UNBILLABLE"
    assert set(states.values()) == {"SETTLED"}
    assert sum(await books.charges(team.team_id)) == Decimal("0.0205")
    assert await team.dead_letters() == []
    await books.assert_they_add_up(team.team_id)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"not a record", id="not JSON"),
        pytest.param(b'{"inference_id": "a"}', id="half a record"),
        pytest.param(b"\x00" * 800_000, id="too large to be kept whole"),
    ],
)
async def test_a_malformed_message_becomes_a_dead_letter_and_the_others_settle(
    payload: bytes,
    team: CallingTeam,
    share: Share,
    records: RecordStore,
    settle: Settle,
    books: Books,
) -> None:
    await team.publish(team.record())
    sequence = await team.publish_raw(payload)
    await team.publish(team.record())
    await share.finish([await share.consume(records)])
    await settle.once_around(asyncio.Event())
    assert list((await books.states(team.team_id)).values()) == ["SETTLED"] * 2
    (letter,) = await team.dead_letters()
    assert (letter.stream, letter.stream_sequence) == (INFERENCE_RECORDS.name, sequence)
    assert letter.reason.startswith("unreadable: ")
    kept = base64.b64decode(letter.payload_base64)
    assert letter.payload_cut == (kept != payload)
    assert payload.startswith(kept)


async def test_a_record_of_another_team_than_its_subject_says_is_no_record(
    team: CallingTeam, share: Share, records: RecordStore, books: Books
) -> None:
    await team.publish(team.record(team_id="somebody-else"))
    await share.finish([await share.consume(records)])
    (letter,) = await team.dead_letters()
    assert letter.reason == "impossible: the subject names another team"
    assert await books.states("somebody-else") == {}


async def test_another_record_under_the_same_id_is_kept_for_a_person(
    team: CallingTeam, share: Share, records: RecordStore, settle: Settle, books: Books
) -> None:
    first = team.record()
    other = msgspec.structs.replace(first, usage=Usage(input=999_999))
    await team.publish(first, first, other)
    await share.finish([await share.consume(records)])
    await settle.once_around(asyncio.Event())
    assert await books.charges(team.team_id) == [Decimal("0.001")]
    (letter,) = await team.dead_letters()
    assert letter.reason.startswith("conflicting: ")
    assert base64.b64decode(letter.payload_base64) == encode(other)


async def test_what_a_record_says_is_what_is_stored(
    team: CallingTeam, share: Share, records: RecordStore, books: Books
) -> None:
    usage = Usage(input=1, cache_read=2, cache_write_5m=3, cache_write_1h=4, output=5, reasoning=6)
    record = team.record(
        endpoint="/v1/messages",
        model_served="model-2024\0",
        tier_id="tier_1",
        usage=usage,
        usage_reported='{"input_tokens":1}',
        provider_request_id="req_1",
        streaming=True,
        client_gone=True,
        first_byte_at_us=1_700_000_000_500_001,
        status_code=200,
        trace_id="a" * 32,
    )
    (sequence,) = await team.publish(record)
    await share.finish([await share.consume(records)])
    (row,) = await books.records(team.team_id)
    assert {name: row[name] for name in COPIED} == {name: getattr(record, name) for name in COPIED}
    assert [row[f"{name}_tokens"] for name in CLASSES] == [getattr(usage, name) for name in CLASSES]
    assert (row["outcome"], row["usage_source"]) == (Outcome.SUCCEEDED, UsageSource.PROVIDER)
    assert row["model_served"] == "model-2024\ufffd"
    assert round(row["first_byte_at"].timestamp() * 10**6) == record.first_byte_at_us
    assert (row["state"], row["stream_sequence"]) == ("PENDING", sequence)
