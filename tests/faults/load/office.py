"""The operator's changes, made all the time: credits, corrections, tiers, keys and prices."""

import asyncio
import random
import time
from collections.abc import Sequence
from decimal import Decimal

from faults.evidence import Certainty, Posting, Revocation
from faults.load.admin import Admin, AdminError
from faults.load.teams import PRICES, PROVIDER, TIERS, Team, new_key

from kit.ids import new_id

_EVERY_S = (0.1, 0.7)


class Office:
    """Changes one team at a time, and remembers what it was told."""

    def __init__(
        self,
        admin: Admin,
        teams: Sequence[Team],
        rng: random.Random,
        opened: Sequence[Posting],
    ) -> None:
        """Change these teams; `opened` is what was posted to them before."""
        self._admin = admin
        self._teams = teams
        self._rng = rng
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.postings = list(opened)
        self.revocations: list[Revocation] = []
        self.changes = 0

    def start(self) -> None:
        """Begin to change things."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Finish the change in hand."""
        self._stop.set()
        if self._task is not None:
            await self._task

    async def change(self, teams: Sequence[Team]) -> None:
        """Move these teams to another tier, and credit them, at once."""
        await asyncio.gather(
            *(self._move_tier(team) for team in teams), *(self._credit(team) for team in teams)
        )

    async def _run(self) -> None:
        works = (self._credit, self._correct, self._move_tier, self._rotate_key, self._reprice)
        while not self._stop.is_set():
            (work,) = self._rng.choices(works, (6, 2, 4, 2, 0.3))
            try:
                await work(self._rng.choice(self._teams))
            except AdminError:
                pass  # nothing was promised to anybody
            try:
                async with asyncio.timeout(self._rng.uniform(*_EVERY_S)):
                    await self._stop.wait()
            except TimeoutError:
                continue

    async def _credit(self, team: Team) -> None:
        digits = Decimal(self._rng.randint(1, 10**15)).scaleb(-17)
        await self._post(team, "credits", digits)

    async def _correct(self, team: Team) -> None:
        digits = Decimal(self._rng.randint(1, 10**12)).scaleb(-18)
        await self._post(team, "adjustments", digits.copy_negate())

    async def _post(self, team: Team, kind: str, amount_usd: Decimal) -> None:
        name = f"{kind} {new_id()}"
        body = {"amount": f"{amount_usd:f}", "reason": name}
        certainty, _ = await self._admin.do("POST", f"/teams/{team.team_id}/{kind}", body)
        self.changes += 1
        self.postings.append(
            Posting(name=name, team_id=team.team_id, amount_usd=amount_usd, certainty=certainty)
        )

    async def _move_tier(self, team: Team) -> None:
        if team.tier_id not in TIERS:
            return
        (other,) = set(TIERS) - {team.tier_id}
        await self._admin.do("PUT", f"/teams/{team.team_id}/tier", {"tier_id": other})
        self.changes += 1
        # Told or not, it doesn't matter which it is: the numbers are the same.
        team.tier_id = other

    async def _rotate_key(self, team: Team) -> None:
        old, team.key = team.key, await new_key(self._admin, team.team_id)
        certainty, _ = await self._admin.do("DELETE", f"/keys/{old.key_id}")
        self.changes += 1
        team.revoked = old
        if certainty is Certainty.DONE:
            now_us = time.time_ns() // 1000
            self.revocations.append(Revocation(key_id=old.key_id, told_at_us=now_us))

    async def _reprice(self, _team: Team) -> None:
        model = self._rng.choice(sorted(PRICES))
        factor = Decimal(self._rng.randint(900, 1_100)).scaleb(-3)
        usd_per_million = {
            name: f"{Decimal(usd) * factor:f}" for name, usd in PRICES[model].items()
        }
        price = {"provider": PROVIDER, "model": model, "usd_per_million": usd_per_million}
        await self._admin.do("POST", "/prices", price)
        self.changes += 1
