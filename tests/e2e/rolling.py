"""Clients and operators that never pause, while the system is restarted part by part."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
from e2e.operator import MODEL, Customer

from fake_provider.behaviour import fake
from quotagate.stack import Stack

CHAT = "/v1/chat/completions"
EDGES = ("edge-proxy", "edge-proxy-2")
CONTROL_PLANES = ("control-plane", "control-plane-2")


class Load:
    """Calls that go on until they are told to stop; each remembers what it was told."""

    def __init__(self, stack: Stack, teams: Sequence[Customer]) -> None:
        self._stack = stack
        self._teams = teams
        self._stop = asyncio.Event()
        self.refused: Counter[str] = Counter()
        """Connections that were refused, by program."""
        self._away: set[str] = set()
        self.inferences: list[str] = []
        """The ids of all that succeeded."""
        self.wrong: list[str] = []
        """What no client should meet."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Call all the time, two clients for each team, one with and one without streams."""
        async with asyncio.TaskGroup() as group:
            for number, team in enumerate(self._teams):
                for stream in (False, True):
                    group.create_task(self._call(team, number, stream=stream))
                group.create_task(self._credit(team, number))
            try:
                yield
            finally:
                self._stop.set()

    def is_ready(self, program: str) -> None:
        """Use a program again that refused a connection, as a load balancer would."""
        self._away.discard(program)

    async def more_successes(self, count: int) -> None:
        """Return after so many more answers."""
        wanted = len(self.inferences) + count
        async with asyncio.timeout(30):
            while len(self.inferences) < wanted:
                await asyncio.sleep(0.01)

    async def _call(self, team: Customer, number: int, *, stream: bool) -> None:
        headers = {"authorization": f"Bearer {team.key}"}
        body = {
            "model": MODEL,
            "stream": stream,
            "messages": [{"role": "user", "content": "hi"}],
            "metadata": fake(latency_ms=5),
        }
        async with httpx.AsyncClient(timeout=30, headers=headers) as http:
            for turn in itertools.count(number):
                if self._stop.is_set():
                    return
                answer = await self._ask(http, EDGES[turn % 2], CHAT, body)
                if answer is None:
                    await asyncio.sleep(0.01)
                elif answer.is_success and (not stream or b"data: [DONE]" in answer.content):
                    self.inferences.append(answer.headers["x-inference-id"])
                else:
                    self.wrong.append(f"{answer.status_code} {answer.text}")

    async def _credit(self, team: Customer, number: int) -> None:
        token = self._stack.state.credentials.admin_token
        headers = {"authorization": f"Bearer {token}"}
        path = f"/admin/v1/teams/{team.team_id}/credits"
        body = {"amount": "0.000001", "reason": "rolling"}
        async with httpx.AsyncClient(timeout=30, headers=headers) as http:
            for turn in itertools.count(number):
                if self._stop.is_set():
                    return
                answer = await self._ask(http, CONTROL_PLANES[turn % 2], path, body)
                if answer is not None and not answer.is_success:
                    self.wrong.append(f"{answer.status_code} {answer.text}")
                await asyncio.sleep(0.1)

    async def _ask(
        self, http: httpx.AsyncClient, program: str, path: str, body: object
    ) -> httpx.Response | None:
        """Return the answer; None: the program is away, or was just found to be."""
        if program in self._away:
            return None
        try:
            return await http.post(f"{self._stack.url(program)}{path}", json=body)
        except httpx.ConnectError:
            self.refused[program] += 1
            self._away.add(program)
        except httpx.HTTPError as error:
            self.wrong.append(f"{program}{path}: {type(error).__name__}: {error}")
        return None
