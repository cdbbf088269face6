"""Callers who ask the same thing at the same time share one answer."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
AnswerT = TypeVar("AnswerT")


class SingleFlight(Generic[KeyT, AnswerT]):
    """At most one piece of work per key at any time; whoever comes meanwhile joins it.

    Nothing is kept: answers and errors go to those who waited, the next caller starts anew. A
    caller who is cancelled leaves alone; the work goes on for the others and ends by its own
    time-outs. Who joins may get an answer that was read before they asked, so this is for facts
    that a fence or a version protects.
    """

    def __init__(self) -> None:
        self._flights: dict[KeyT, asyncio.Task[AnswerT]] = {}

    async def run(self, key: KeyT, work: Callable[[], Coroutine[Any, Any, AnswerT]]) -> AnswerT:
        """Return what `work` returns, or raise what it raises, joining work under way for `key`."""
        flight = self._flights.get(key)
        if flight is None or flight.done():
            flight = self._flights[key] = asyncio.create_task(work())
            flight.add_done_callback(lambda ended: self._land(key, ended))
        return await asyncio.shield(flight)

    def _land(self, key: KeyT, ended: "asyncio.Task[AnswerT]") -> None:
        if self._flights.get(key) is ended:
            del self._flights[key]
        if not ended.cancelled():
            ended.exception()  # seen, also when every caller has left
