"""The course of a catch-up: the replay, then the caches."""

from dataclasses import dataclass

from quotagate import stores
from quotagate.catch_up.caches import forget_newer
from quotagate.catch_up.replay import Patience, Replay, replay
from quotagate.stores import StoreSettings


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a catch-up came to."""

    replay: Replay
    forgotten: tuple[str, ...]
    """Teams of which the caches knew what the database doesn't, in the order of their ids."""


async def catch_up(settings: StoreSettings, patience: Patience) -> Outcome:
    """Replay the stream and wait until all of it is settled; then have the caches forget.

    May be interrupted and repeated: nothing is charged twice. Settlement must run. In this order,
    because until the replay is over the caches know of more spending than the database.

    Raises:
        CannotTellError: a store doesn't answer, or settlement stands still.

    """
    async with stores.database(settings) as engine:
        async with stores.bus(settings) as client:
            replayed = await replay(client, engine, patience)
        async with stores.cache(settings) as cache:
            forgotten = await forget_newer(cache, engine)
    return Outcome(replayed, tuple(forgotten))
