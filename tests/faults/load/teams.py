"""Who there is: teams in tiers, with keys and money, and prices that no float can hold."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from faults.evidence import Certainty, Posting
from faults.load.admin import Admin, AdminError
from faults.load.orders import MODELS

PROVIDER = "fake"
# Odd on purpose: each differs from its nearest float in what it charges.
PRICES = {
    "small-1": {
        "input": "0.1500000000000000000123",
        "cache_read": "0.07",
        "output": "0.6000000007",
    },
    "large-1": {"input": "2.51", "cache_read": "1.2500000000000000000001", "output": "10.03"},
}
# The same numbers under two names, for teams to be moved between.
TIERS = ("storm-a", "storm-b")
TIGHT_TIER = "storm-tight"
# Limits that refuse nobody, so that what is spent is summed up and counted through every fault.
_SPEND = [
    {"period": "day", "limit_usd": "100000"},
    {"period": "month", "scope": "key", "limit_usd": "0.01", "mode": "soft"},
]
_WIDE = {"rpm": 60_000, "tpm": 1_000_000_000, "spend_limits": _SPEND}
_TIGHT = {"rpm": 60, "tpm": 60_000}
_CREDITS = {"rich": "1000.000000000000000000001", "poor": "0.02", "tight": "100", "idle": "5"}
_IDLE = 10


@dataclass(frozen=True, slots=True)
class Key:
    """An API key that works until it is revoked."""

    key_id: str
    text: str


@dataclass(slots=True)
class Team:
    """A team; its key and tier change."""

    team_id: str
    kind: str
    """`rich`, `poor` (runs into 402), `tight` (runs into 429), or `idle`: calls only when asked."""
    key: Key
    tier_id: str
    revoked: Key | None = None
    """The key before, which its holders may still try."""


async def open_teams(
    admin: Admin, count: int, rng: random.Random
) -> tuple[Sequence[Team], Sequence[Posting]]:
    """Open so many teams and some idle ones; return them, and what was credited to them."""
    for tier_id in TIERS:
        await admin.must("PUT", f"/tiers/{tier_id}", _WIDE)
    await admin.must("PUT", f"/tiers/{TIGHT_TIER}", _TIGHT)
    for model, usd_per_million in PRICES.items():
        price = {"provider": PROVIDER, "model": model, "usd_per_million": usd_per_million}
        await admin.must("POST", "/prices", price)
    teams, postings = [], []
    kinds = ["poor" if n % 6 == 4 else "tight" if n % 6 == 5 else "rich" for n in range(count)]
    for number, kind in enumerate([*kinds, *["idle"] * _IDLE]):
        team_id = f"storm-{number}"
        tier_id = TIGHT_TIER if kind == "tight" else rng.choice(TIERS)
        await admin.must("POST", "/teams", {"team_id": team_id, "tier_id": tier_id})
        credit = {"amount": _CREDITS[kind], "reason": f"opening of {team_id}"}
        await admin.must("POST", f"/teams/{team_id}/credits", credit)
        postings.append(
            Posting(
                name=credit["reason"],
                team_id=team_id,
                amount_usd=Decimal(credit["amount"]),
                certainty=Certainty.DONE,
            )
        )
        teams.append(Team(team_id, kind, await new_key(admin, team_id), tier_id))
    assert set(MODELS) == {model.partition("-")[0] for model in PRICES}
    return teams, postings


async def new_key(admin: Admin, team_id: str) -> Key:
    """Make another key.

    Raises:
        AdminError: it couldn't be made, or was made without us being told its text.

    """
    made = await admin.must("POST", f"/teams/{team_id}/keys", {"name": "storm"})
    if made["key"] is None:
        raise AdminError("the key's text was shown to nobody")
    return Key(made["key_id"], made["key"])
