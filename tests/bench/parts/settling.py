"""Records per second from the stream to `SETTLED`: a backlog, and settlement alone with it."""

import asyncio
import itertools
import time

import asyncpg
import uvloop
from bench.figures import Figures
from bench.plan import Plan
from bench.stage import MODEL, PROVIDER, Stage
from bench.wire import Question, flood

from contracts.contract import encode
from contracts.inference import INFERENCE_RECORDED, InferenceRecord, Outcome, UsageSource
from contracts.usage import Usage
from kit.ids import new_id

_IN_FLIGHT = 256
_POLL_S = 0.1
_WITHIN_S = 180.0
# By when the service had them and by when they were charged, both of the database's clock.
_PROGRESS = """
SELECT count(*) AS settled,
       coalesce(extract(epoch FROM max(settled_at) - min(received_at)), 0)::float8 AS took_s
FROM inference_record
WHERE api_key_id = $1 AND state = 'SETTLED'
"""


def measure(stage: Stage, figures: Figures, plan: Plan) -> None:
    """Publish records while settlement is stopped, start it, and see how fast it works."""
    stage.stack.stop("settlement")
    key_id = f"bench-{new_id()}"
    published_per_s = _publish(stage, key_id, plan.records)
    figures.add(
        "published_per_s", published_per_s, "/s", f"records to the stream, {_IN_FLIGHT} at once"
    )
    stage.stack.start("settlement")
    took_s = asyncio.run(_settled(stage, key_id, plan.records))
    figures.add(
        "settled_per_s", plan.records / took_s, "/s", f"{plan.records:,} records of ten teams"
    )


def _publish(stage: Stage, key_id: str, count: int) -> float:
    """Publish records as the edge does; return how many a second were acknowledged."""
    servers = stage.stack.servers
    login = ("operator", servers.nats_passwords["operator"])
    price_id = asyncio.run(_price_id(stage))
    numbers = iter(range(count))
    turns = itertools.cycle(stage.teams)

    def ask() -> Question | None:
        if next(numbers, None) is None:
            return None
        now_us = time.time_ns() // 1_000
        team = next(turns)
        record = InferenceRecord(
            inference_id=new_id(),
            attempt_no=1,
            team_id=team.team_id,
            api_key_id=key_id,
            provider=PROVIDER,
            model_asked=MODEL,
            model_sent=MODEL,
            model_served=MODEL,
            outcome=Outcome.SUCCEEDED,
            usage_source=UsageSource.PROVIDER,
            usage=Usage(input=120, output=30),
            usage_reported='{"prompt_tokens": 120, "completion_tokens": 30}',
            price_id=price_id,
            tier_id=stage.tier_id,
            provider_request_id=f"req-{team.team_id}",
            started_at_us=now_us - 1_000,
            first_byte_at_us=now_us,
            finished_at_us=now_us,
            status_code=200,
        )
        subject = INFERENCE_RECORDED.subject_for(team.team_id)
        return Question(subject, encode(record), record.message_id)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        answers = runner.run(flood(servers.nats_url, login, ask, _IN_FLIGHT))
    if answers.errors or not all(b'"seq"' in sample for sample in answers.samples):
        raise RuntimeError(f"the stream refused records: {answers.samples}")
    return count / answers.elapsed_s


async def _price_id(stage: Stage) -> str:
    database = await asyncpg.connect(stage.stack.servers.database_url)
    try:
        found = await database.fetchval(
            "SELECT price_id::text FROM price WHERE provider = $1 AND model = $2"
            " ORDER BY effective_from DESC LIMIT 1",
            PROVIDER,
            MODEL,
        )
    finally:
        await database.close()
    return str(found)


async def _settled(stage: Stage, key_id: str, count: int) -> float:
    """Wait until all are settled; return the seconds from the first's arrival to the last."""
    database = await asyncpg.connect(stage.stack.servers.database_url)
    settled, took_s = 0, 0.0
    try:
        async with asyncio.timeout(_WITHIN_S):
            while settled < count:
                # Rarely: counting costs the same two cores.
                await asyncio.sleep(max(_POLL_S, (count - settled) / 20_000))
                row = await database.fetchrow(_PROGRESS, key_id)
                if row is not None:
                    settled, took_s = row["settled"], row["took_s"]
    finally:
        await database.close()
    return took_s
