"""Attempts of one inference: the first, and those that its route's policy makes after failures.

No attempt follows once a byte has gone to the client, and none is made for a client that has left,
nor while the hand-off is failing, nor once the process has to leave. Before each further one
admission is asked whether the team may still pay: it takes no interval of the request limit.
"""

import asyncio
import random
from collections.abc import Mapping

from contracts.idempotency import IdempotencyEntry, KeptAnswer
from contracts.inference import Outcome
from edge_proxy.domain.idempotency import UNAVAILABLE
from edge_proxy.domain.inference import Leg
from edge_proxy.domain.problems import (
    BALANCE_NEGATIVE,
    CHECK_UNAVAILABLE,
    HAND_OFF_UNAVAILABLE,
    NOT_RECORDED,
    Problem,
)
from edge_proxy.domain.retries import Again, Course, again
from edge_proxy.domain.upstream import Failure, Reply, reply_of
from edge_proxy.handlers.client import Client
from edge_proxy.handlers.dispatch import Dispatch, Relayed, Result, Unrecorded, Whole
from edge_proxy.handlers.edge import Edge
from edge_proxy.handlers.plan import Plan
from edge_proxy.store.held_key import HeldKey
from kit import log
from kit.bus.errors import BusError

_US_PER_S = 1_000_000

_logger = log.get(__name__)


class Attempts:
    """Makes the attempts of one inference and answers its client, once."""

    def __init__(self, edge: Edge, client: Client, plan: Plan) -> None:
        self._edge = edge
        self._client = client
        self._plan = plan
        self._attempt_no = plan.inference.first_attempt_no
        self._began_us = edge.clock.monotonic_us()
        self._leg = 0
        self._tries = 1
        self._waited_s = 0.0

    async def run(self) -> None:
        """Make attempts until one succeeds or the policy ends them; answer with the last."""
        accounting, plan = self._edge.accounting, self._plan
        accounting.hold(plan.inference, plan.lease)
        result = None
        try:
            result = await self._result()
        finally:
            await accounting.let_go(plan.inference, plan.lease)
            if plan.held is not None:
                await self._edge.idempotency.settle(plan.held, self._last_word(plan.held, result))
        match result:
            case Whole(reply, limits):
                await self._answer(reply, limits)
            case Failure(reply):
                await self._answer(reply, {})
            case Unrecorded():
                await self._answer(reply_of(NOT_RECORDED, plan.inference.endpoint.shape), {})
            case Relayed():
                pass

    def _last_word(self, held: HeldKey, result: Result | None) -> IdempotencyEntry:
        """Return what the next request of this key is to find; no result: a fault of ours."""
        match result:
            case Whole(reply):
                return held.finished(self._kept(reply))
            case Unrecorded(reply, record):
                return held.finished(self._kept(reply), record)
            case Relayed(Outcome.SUCCEEDED):
                return held.finished(None)
            case _:
                return held.left_open()

    def _kept(self, reply: Reply) -> KeptAnswer:
        headers = {**reply.headers, **self._plan.names(self._attempt_no)}
        return KeptAnswer(status=reply.status, headers=headers, body=reply.body)

    async def _result(self) -> Result:
        result = await self._attempt()
        while isinstance(result, Failure):
            step = self._step_after(result)
            if step is None or not await self._reaches(step):
                break
            problem = await self._objection(self._plan.legs[step.leg])
            if problem is not None:
                return Failure(reply_of(problem, self._plan.inference.endpoint.shape))
            self._attempt_no += 1
            result = await self._attempt()
        return result

    async def _attempt(self) -> Result:
        dispatch = Dispatch(self._edge, self._client, self._plan)
        return await dispatch.attempt(self._attempt_no, self._plan.legs[self._leg])

    def _step_after(self, failure: Failure) -> Again | None:
        if self._client.gone or self._edge.in_flight.stopping or not self._edge.hand_off.accepting:
            return None
        elapsed_us = self._edge.clock.monotonic_us() - self._began_us
        course = Course(
            leg=self._leg,
            tries=self._tries,
            waited_s=self._waited_s,
            elapsed_s=elapsed_us / _US_PER_S,
        )
        jitter = random.random()  # noqa: S311 # spreads retries, guards nothing
        return again(self._plan.retry, failure, course, len(self._plan.legs), jitter)

    async def _reaches(self, step: Again) -> bool:
        """Wait as long as the step says; return whether anybody still wants it."""
        if step.wait_s:
            pause = _Pause()
            self._edge.in_flight.waits(pause)
            try:
                await pause.wait(step.wait_s)
            finally:
                self._edge.in_flight.waited(pause)
        self._waited_s += step.wait_s
        self._tries = self._tries + 1 if step.leg == self._leg else 1
        self._leg = step.leg
        return not (self._client.gone or self._edge.in_flight.stopping)

    async def _objection(self, leg: Leg) -> Problem | None:
        """Return what speaks against one more attempt; None: nothing does."""
        inference = self._plan.inference
        if not self._edge.hand_off.accepting:
            return HAND_OFF_UNAVAILABLE
        try:
            may_pay = await self._edge.admission.may_go_on(inference, self._attempt_no + 1, leg)
        except BusError as error:
            _logger.warning(
                "further attempt not judged",
                error=type(error).__name__,
                team_id=inference.caller.team_id,
                inference_id=inference.inference_id,
            )
            return CHECK_UNAVAILABLE
        if not may_pay:
            return BALANCE_NEGATIVE
        try:
            if self._plan.held is not None:
                await self._plan.held.reach(self._attempt_no + 1)
        except BusError:
            return UNAVAILABLE
        return None

    async def _answer(self, reply: Reply, limits: Mapping[str, str]) -> None:
        headers = {**reply.headers, **limits, **self._plan.headers(self._attempt_no)}
        await self._client.answer(reply.status, headers, reply.body)


class _Pause:
    """A wait between attempts, which ends at once when the process is told to leave."""

    def __init__(self) -> None:
        self._over = asyncio.Event()

    def hurry(self, _left_s: float) -> None:
        """Wait no longer."""
        self._over.set()

    async def wait(self, wait_s: float) -> None:
        """Return after so long, or when hurried."""
        try:
            async with asyncio.timeout(wait_s):
                await self._over.wait()
        except TimeoutError:
            return
