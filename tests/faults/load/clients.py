"""Applications of teams: each sends, believes what it is told, and remembers it."""

import asyncio
import json
import random
import time
from collections.abc import Sequence

from faults.evidence import Request, Told
from faults.load.http import Answer, call
from faults.load.orders import Order, Orders
from faults.load.teams import Key, Team
from faults.seeds import chance
from faults.world import World

from edge_proxy.domain.problems import (
    CHECK_UNAVAILABLE,
    HAND_OFF_UNAVAILABLE,
    KEYS_UNAVAILABLE,
    STARTING,
    TOO_BUSY,
)
from edge_proxy.domain.upstream import ERROR_SOURCE

_NOTHING_WAS_SENT = frozenset(
    problem.message
    for problem in (
        CHECK_UNAVAILABLE,
        KEYS_UNAVAILABLE,
        HAND_OFF_UNAVAILABLE,
        TOO_BUSY,
        STARTING,
    )
)
_REFUSALS = frozenset({400, 401, 402, 403, 404, 413, 429})
_UNAVAILABLE = 503
_OK = 200
EDGES = ("edge-proxy", "edge-proxy-2")
_DONE = b"data: [DONE]\n\n"
_PAUSE_S = (0.05, 0.35)
_AFTER_REFUSAL_S = (0.2, 0.6)
_WITH_REVOKED_KEY = 0.08


def judge(order: Order, answer: Answer, *, left: bool) -> Told:
    """Return what a client may believe after this answer."""
    if left:
        return Told.LEFT
    if not answer.whole:
        return Told.CUT
    if answer.status == _OK:
        complete = not order.stream or answer.body.endswith(_DONE)
        return Told.COMPLETE if complete else Told.FAILED
    if answer.status in _REFUSALS and ERROR_SOURCE not in answer.headers:
        return Told.REFUSED
    if answer.status == _UNAVAILABLE and answer.error.get("message") in _NOTHING_WAS_SENT:
        return Told.REFUSED
    return Told.FAILED


class Clients:
    """All applications, and their common memory."""

    def __init__(self, world: World, teams: Sequence[Team], seed: int) -> None:
        self._world = world
        self._teams = teams
        self._seed = seed
        self._rng = chance(seed)
        self._orders: dict[str, Orders] = {}
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.history: list[Request] = []

    def start(self, each: int) -> None:
        """Let `each` applications of every team begin."""
        for index, team in enumerate(self._teams):
            if team.kind == "idle":
                continue
            orders = Orders(chance(f"{self._seed}:{index}"))
            for number in range(each):
                rng = chance(f"{self._seed}:{index}:{number}")
                self._tasks.append(asyncio.create_task(self._run(team, orders, rng)))

    async def stop(self) -> None:
        """Let every application finish the call that it is in."""
        self._stop.set()
        await asyncio.gather(*self._tasks)

    async def _run(self, team: Team, orders: Orders, rng: random.Random) -> None:
        while not self._stop.is_set():
            key = team.key
            if team.revoked is not None and rng.random() < _WITH_REVOKED_KEY:
                key = team.revoked
            edge = rng.choice(EDGES)
            request = await self.send(team, orders.next(), edge, key)
            pause_s = _AFTER_REFUSAL_S if request.told is Told.REFUSED else _PAUSE_S
            try:
                async with asyncio.timeout(rng.uniform(*pause_s)):
                    await self._stop.wait()
            except TimeoutError:
                continue

    async def ask(self, team: Team, edge: str | None = None) -> Request:
        """Send one request without any mishap, to this edge or to either."""
        orders = self._orders.setdefault(team.team_id, Orders(chance(team.team_id)))
        order = orders.next()
        while not order.is_plain:
            order = orders.next()
        return await self.send(team, order, edge or self._rng.choice(EDGES))

    async def send(self, team: Team, order: Order, edge: str, key: Key | None = None) -> Request:
        """Send one request, and remember what came of it."""
        key = key or team.key
        headers = {
            "authorization": f"Bearer {key.text}",
            "content-type": "application/json",
            "traceparent": f"00-{order.marker}-{order.marker[:15]}1-01",
            "connection": "close",
        }
        body = b"{" if order.broken else json.dumps(order.body()).encode()
        left = False

        def leave(received: int) -> bool:
            nonlocal left
            left = order.leaves_after_bytes is not None and received > order.leaves_after_bytes
            return left

        sent_at_us = time.time_ns() // 1000
        answer = await call(self._world.edge_address(edge), headers, body, leave)
        told_at_us = time.time_ns() // 1000
        error = answer.error
        request = Request(
            marker=order.marker,
            team_id=team.team_id,
            key_id=key.key_id,
            usage=order.usage,
            sent_at_us=sent_at_us,
            told=judge(order, answer, left=left),
            told_at_us=told_at_us,
            status=answer.status,
            reason=f"{error.get('code', '')} {error.get('message', '')}".strip(),
            inference_id=answer.headers.get("x-inference-id"),
            limits_shown=not order.stream and "x-ratelimit-limit-requests" in answer.headers,
        )
        self.history.append(request)
        return request
