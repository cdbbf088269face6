"""A stream on its way from a provider to a client, and on its own once the client has left."""

import asyncio
from collections.abc import Mapping

from contracts.inference import Outcome
from edge_proxy.clients.provider import Exchange
from edge_proxy.domain import upstream
from edge_proxy.domain.adapters.scanner import StreamScanner
from edge_proxy.domain.inference import Attempt
from edge_proxy.domain.problems import NOT_RECORDED, Problem
from edge_proxy.errors import BrokenAnswerError, ProviderTimeoutError
from edge_proxy.handlers.accounting import Accounted
from edge_proxy.handlers.client import Client
from edge_proxy.handlers.edge import Edge

_KEEP_ALIVE = b": keep-alive\n\n"
_LONGEST_TICK_S = 1.0


class StreamRelay:
    """Relays one stream, as fast as the client reads, and ends it only after its accounting."""

    def __init__(
        self,
        edge: Edge,
        client: Client,
        attempt: Attempt,
        exchange: Exchange,
        scanner: StreamScanner,
    ) -> None:
        self._edge = edge
        self._client = client
        self._attempt = attempt
        self._exchange = exchange
        self._scanner = scanner
        self._drained_bytes: int | None = None
        """None while the client is there."""

    async def run(self, headers: Mapping[str, str]) -> Outcome:
        """Answer the client with the stream, account for the attempt, return how it ended."""
        await self._client.start(self._exchange.status, headers)
        beat = asyncio.create_task(self._beat())
        try:
            problem = await self._pass_on()
        finally:
            beat.cancel()
            if self._drained_bytes is not None:
                self._edge.in_flight.drains(-1)
        tail = self._scanner.end() if problem is None else b""
        if problem is None and not (self._scanner.complete or self._scanner.failed):
            problem = upstream.INCOMPLETE
        if problem is not None:
            self._attempt.failure = upstream.cause_of(problem, None)
        self._attempt.answer = self._scanner.answer
        self._attempt.client_gone = self._client.gone
        outcome = self._outcome(problem)
        accounted = await self._edge.accounting.end(self._attempt, outcome)
        await self._edge.stored_responses.remember(self._attempt)
        await self._client.write(self._last_words(tail, problem, accounted), last=True)
        if self._scanner.ended:
            await self._exchange.skip_tail()
        return outcome

    async def _pass_on(self) -> Problem | None:
        """Pass the stream on to its end; return what broke it off, if anything did."""
        try:
            while (chunk := await self._exchange.next()) is not None:
                ready = self._scanner.feed(chunk)
                if ready:
                    await self._client.write(ready)
                if self._client.gone and not self._may_drain(len(chunk)):
                    return upstream.INCOMPLETE
                if self._scanner.ended:
                    return None
        except ProviderTimeoutError:
            return upstream.TIMED_OUT
        except BrokenAnswerError:
            return upstream.DISCONNECTED
        return None

    def _outcome(self, problem: Problem | None) -> Outcome:
        if self._scanner.failed:
            return Outcome.FAILED
        return Outcome.SUCCEEDED if problem is None else Outcome.ABORTED

    def _last_words(self, tail: bytes, problem: Problem | None, accounted: Accounted) -> bytes:
        shape = self._attempt.inference.endpoint.shape
        if self._scanner.failed:
            return tail + self._scanner.held
        if not accounted.durable:
            return shape.error_event(NOT_RECORDED)
        if problem is None:
            return tail + self._scanner.held
        # What was passed on of an event too large to hold must not swallow ours.
        border = b"" if self._scanner.between_events else b"\n\n"
        return border + self._scanner.held + shape.error_event(problem)

    def _may_drain(self, arrived_bytes: int) -> bool:
        """Read on for a client that has left, within bounds, to learn the usage."""
        if self._drained_bytes is None:
            self._drained_bytes = 0
            self._edge.in_flight.drains(1)
            self._exchange.hurry(self._edge.settings.drain_s)
        self._drained_bytes += arrived_bytes
        return self._drained_bytes <= self._edge.settings.drain_bytes

    async def _beat(self) -> None:
        """Write a comment when the stream has been silent for long, and notice a client's leave."""
        keep_alive_s = self._edge.settings.keep_alive_s
        tick_s = min(_LONGEST_TICK_S, keep_alive_s / 4)
        while not self._client.gone:
            await asyncio.sleep(tick_s)
            silent_s = self._client.silent_s
            if silent_s >= keep_alive_s and self._scanner.between_events:
                await self._client.write(_KEEP_ALIVE)
        self._may_drain(0)
