"""Every process is restarted in its turn, under load, and nobody outside can tell."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import asyncpg
import pytest
from e2e.operator import Operator
from e2e.rolling import CONTROL_PLANES, EDGES, Load
from redis.asyncio import Redis
from stacks import new_stack

from quotagate.stack import Stack
from quotagate.stores import of_servers
from quotagate.verify import Options, verify

REPLICATED = ("edge-proxy", "admission", "tier-cache", "settlement", "control-plane")
PROGRAMS = tuple(program for service in REPLICATED for program in (service, f"{service}-2"))
TEAMS = 3
_BETWEEN = 20
CHARGED = (
    "SELECT inference_id FROM inference_record JOIN usage_charge ON inference_record_id = record_id"
)


@pytest.fixture(scope="module")
def pairs() -> Iterator[Stack]:
    """A stack with two of each service."""
    with new_stack("pairs", QUOTAGATE_KEY_FRESH_S="0.05", QUOTAGATE_ACK_WAIT_S="5") as stack:
        stack.up(counts=dict.fromkeys(REPLICATED, 2))
        yield stack


@pytest.fixture(scope="module")
async def operator(pairs: Stack) -> AsyncIterator[Operator]:
    operator = Operator(pairs)
    yield operator
    await operator.close()


@contextlib.asynccontextmanager
async def forgetful(stack: Stack, teams: list[str]) -> AsyncIterator[None]:
    """Have Valkey forget the teams' tiers over and over, so that tier-cache is asked."""

    async def forget() -> None:
        async with Redis.from_url(stack.servers.redis_url) as valkey:
            while True:
                for team_id in teams:
                    await valkey.delete(f"quota:{{{team_id}}}:tier")
                    await asyncio.sleep(0.02)

    task = asyncio.create_task(forget())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def is_alive(pid: int) -> bool:
    """Tell whether there is such a process."""
    return Path(f"/proc/{pid}").exists()


async def restart(stack: Stack, program: str) -> None:
    """Tell one process to stop; return when its successor is ready."""
    (pid,) = [status.pid for status in stack.status() if status.name == program]
    os.kill(pid, signal.SIGTERM)
    async with asyncio.timeout(60):
        while is_alive(pid):
            await asyncio.sleep(0.02)
    await asyncio.to_thread(stack.wait_ready, program)


async def all_charged_once(stack: Stack, inferences: Sequence[str]) -> None:
    """See that the database has one charge for each of these successes, and no other one."""
    connection = await asyncpg.connect(stack.servers.database_url)
    try:
        charged: list[str] = []
        async with asyncio.timeout(60):
            while len(charged) < len(inferences):
                charged = [row["inference_id"] for row in await connection.fetch(CHARGED)]
                await asyncio.sleep(0.1)
    finally:
        await connection.close()
    assert sorted(charged) == sorted(inferences)


@pytest.mark.timeout(240)
async def test_a_rolling_restart_is_met_by_nobody(pairs: Stack, operator: Operator) -> None:
    tier_id = await operator.open_tier(rpm=60_000_000, tpm=1_000_000_000)
    teams = [await operator.open_team(tier_id, credit_usd="100") for _ in range(TEAMS)]
    load = Load(pairs, teams)
    async with forgetful(pairs, [team.team_id for team in teams]), load.running():
        for program in PROGRAMS:
            await load.more_successes(_BETWEEN)
            await restart(pairs, program)
            load.is_ready(program)
        await load.more_successes(_BETWEEN)
    assert load.wrong == []
    # Whoever spreads calls over two addresses meets one that is closed for a moment.
    assert set(load.refused) <= {*EDGES, *CONTROL_PLANES}
    await all_charged_once(pairs, load.inferences)
    report = await verify(of_servers(pairs.servers), Options())
    assert (report.findings, report.untold) == ([], [])
