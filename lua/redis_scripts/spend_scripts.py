"""The scripts that count what was spent in a period, one typed method each."""

import random

from redis_scripts import keys as lives
from redis_scripts.keys import life_ms, spend_counter, team_keys, version_of
from redis_scripts.numbers import exact, money, spend
from redis_scripts.pipelines import Pipelines
from redis_scripts.sources import Script, load
from redis_scripts.values import CountedSpend, Spend, SpendFill, SpendRefresh, SpendRepair

_US_PER_MS = 1_000

_FILL_SPEND = load("fill_spend")
_REFRESH_SPEND = load("refresh_spend")
_REPAIR_SPEND = load("repair_spend")


class SpendScripts:
    """A part of `RedisScripts`, whose methods raise what all of them raise."""

    _pipelines: Pipelines
    _rng: random.Random

    async def fill_spend(self, team_id: str, spent: Spend) -> SpendFill:
        """Count what the database said, where nothing is counted and no newer spend was there."""
        arguments = (spend(spent.amount_nano_usd), exact(spent.version))
        return SpendFill(await self._on_spend(_FILL_SPEND, team_id, spent, arguments))

    async def refresh_spend(self, team_id: str, settled: Spend) -> SpendRefresh:
        """Replace what is counted by settled spend of a newer version, or count it anew."""
        arguments = (spend(settled.amount_nano_usd), exact(settled.version))
        return SpendRefresh(await self._on_spend(_REFRESH_SPEND, team_id, settled, arguments))

    async def repair_spend(self, team_id: str, read: CountedSpend, settled: Spend) -> SpendRepair:
        """Replace spend that is still what was read by what was settled."""
        arguments = (
            money(read.amount_nano_usd),
            exact(read.version),
            spend(settled.amount_nano_usd),
            exact(settled.version),
        )
        return SpendRepair(await self._on_spend(_REPAIR_SPEND, team_id, settled, arguments))

    async def _on_spend(
        self, script: Script, team_id: str, spent: Spend, arguments: tuple[int, ...]
    ) -> str:
        team_keys(team_id)
        place = spend_counter(spent.start_us, spent.end_us, spent.key_id)
        life = life_ms(lives.SPEND_LIFE_MS, lives.SPEND_JITTER_MS, self._rng)
        expires_ms = spent.end_us // _US_PER_MS + life
        reply = await self._pipelines.run(
            script,
            (place.of(team_id), version_of(place).of(team_id)),
            (*arguments, exact(expires_ms)),
        )
        return str(reply, "ascii")
