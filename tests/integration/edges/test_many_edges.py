"""One team's limits hold over all edges together, however many clients ask in a loop."""

import asyncio
import contextlib
from collections import Counter
from typing import Any

import httpx
from integration.edge_proxy.world import CHAT, EdgeProcess, Team, asked
from integration.edges.floor import Floor

from redis_scripts.keys import team_keys

RPM = 60
INTERVAL_US = 1_000_000
CLIENTS = 240
FOR_S = 8


async def test_240_clients_at_four_edges_get_one_request_a_second(
    floor: Floor, others: tuple[EdgeProcess, ...]
) -> None:
    team, _ = await floor.open_team(rpm=RPM)
    over = asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(httpx.AsyncClient(base_url=edge.url, timeout=60))
            for edge in (floor.edge, *others)
        ]
        began_us = await floor.now_us()
        answers: Counter[int] = Counter()
        asking = [
            asyncio.create_task(_asks_until(over, team, clients[number % len(clients)], answers))
            for number in range(CLIENTS)
        ]
        # However slow the machine is: long enough for several to be admitted.
        while (
            await floor.now_us() < began_us + FOR_S * 1_000_000
            or answers[httpx.codes.OK] <= FOR_S / 2
        ):
            if any(each.done() for each in asking):
                break  # it met what it must not, and says so below
            await asyncio.sleep(0.1)
        over.set()
        await asyncio.gather(*asking)
        ended_us = await floor.now_us()
    admitted = answers[httpx.codes.OK]
    # The last admission advanced the TAT by an interval, and each before it by one.
    tat: Any = await floor.redis.get(team_keys(team.team_id).request_tat)
    last_us = int(tat) - INTERVAL_US
    assert began_us <= last_us <= ended_us
    assert admitted <= (last_us - began_us) // INTERVAL_US + 1
    assert admitted > FOR_S / 2
    assert (await floor.witness.counts(marker=team.team_id))["requests"] == admitted


async def _asks_until(
    over: asyncio.Event, team: Team, http: httpx.AsyncClient, answers: Counter[int]
) -> None:
    """Ask in a loop, and count the answers by status."""
    while not over.is_set():
        answer = await http.post(CHAT, headers=team.headers, json=asked(team))
        answers[answer.status_code] += 1
        if answer.status_code != httpx.codes.OK:
            assert answer.status_code == httpx.codes.TOO_MANY_REQUESTS, answer.text
            assert answer.headers["x-ratelimit-reason"] == "requests"
