"""Several admissions share the work, and one that is told to stop still answers everybody."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from integration.admission.conftest import PATIENT
from integration.admission.edge import Edge
from integration.desk import Desk
from integration.services import ServiceProcess

from contracts.admission import Decision
from contracts.usage import Usage
from quotagate.stack import Servers

ANSWERED = 'quotagate_bus_replies_total{code="ok",endpoint="admission-preflight"}'


@pytest.fixture
async def second(
    servers: Servers, admission: ServiceProcess, tmp_path: Path
) -> AsyncIterator[ServiceProcess]:
    """Another admission beside the first."""
    second = ServiceProcess(servers, "admission", tmp_path, PATIENT)
    await second.start_ready()
    yield second
    await second.stop()


async def test_one_of_many_at_once_is_admitted_whoever_is_asked(
    edge: Edge, desk: Desk, admission: ServiceProcess, second: ServiceProcess
) -> None:
    team_id = await desk.open_team(await desk.open_tier(rpm=1))
    before = [await process.metric(ANSWERED) for process in (admission, second)]
    replies = await asyncio.gather(*(edge.preflight(team_id) for _ in range(100)))
    decisions = Counter(reply.decision for reply in replies)
    assert decisions == {Decision.ALLOWED: 1, Decision.RATE_LIMITED: 99}
    after = [await process.metric(ANSWERED) for process in (admission, second)]
    assert all(now > then for now, then in zip(after, before, strict=True))


async def test_charges_of_many_at_once_add_up(
    edge: Edge, desk: Desk, second: ServiceProcess
) -> None:
    team_id = await desk.open_team(await desk.open_tier(rpm=10**6), balance_usd="1")
    admitted = await edge.preflight(team_id)
    usage = Usage(input=1_000)
    await asyncio.gather(*(edge.postflight(team_id, admitted, usage) for _ in range(100)))
    reply = await edge.postflight(team_id, admitted, Usage())
    assert 90_000_000 < reply.limits.reset_tokens_us <= 100 * 1_000_000


async def test_who_is_told_to_stop_answers_everything_it_was_asked(
    edge: Edge, desk: Desk, second: ServiceProcess
) -> None:
    team_id = await desk.open_team(await desk.open_tier(rpm=10**6))
    stopped = asyncio.Event()

    async def ask_until_stopped() -> int:
        answers = 0
        while not stopped.is_set():
            await edge.preflight(team_id)  # an unanswered one raises
            answers += 1
        return answers

    callers = [asyncio.create_task(ask_until_stopped()) for _ in range(64)]
    await second.becomes_more(ANSWERED, 1_000)
    second.signal(signal.SIGTERM)
    assert await second.ended() in {0, -signal.SIGTERM}
    stopped.set()
    assert sum(await asyncio.gather(*callers)) > 1_000
    assert "Traceback" not in second.log()
