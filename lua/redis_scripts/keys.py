"""Every Redis key of a team and how long it lives. Nothing else in the repository spells a key.

`{team_id}` is the hash tag: all keys of a team share a cluster slot, so one script judges them all.
"""

import random
import re
from typing import NamedTuple

from contracts.ids import ADDRESS_PATTERN, ID_PATTERN
from redis_scripts.errors import InvalidAddressError, InvalidTeamIdError

_SECOND_US = 1_000_000
_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS

TAT_LIFE_MS = _HOUR_MS
TAT_JITTER_MS = 3 * _MINUTE_MS
BALANCE_LIFE_MS = _HOUR_MS
BALANCE_JITTER_MS = 3 * _MINUTE_MS
TIER_LIFE_MS = 5 * _MINUTE_MS
TIER_JITTER_MS = _MINUTE_MS
# Longer than the mapping it fences, and far longer than any fill can be on its way.
TIER_FENCE_LIFE_MS = _HOUR_MS
# After the day's end, for clocks that are apart.
DAY_COUNTER_LIFE_MS = _HOUR_MS
DAY_COUNTER_JITTER_MS = 3 * _MINUTE_MS
SPEND_LIFE_MS = _HOUR_MS
SPEND_JITTER_MS = 3 * _MINUTE_MS

BALANCE_PATTERN = "quota:{*}:account-balance"
"""Matches every team's balance key: for who looks at all of them."""
SPEND_PATTERN = "quota:{*}:spend:*"
"""Matches every key of every team that counts spend, and of the versions it belongs to."""
TEAM_PATTERN = "quota:{*}:*"
"""Matches every key of every team."""

_BALANCE = re.compile(rb"quota:\{([A-Za-z0-9_-]{1,64})\}:account-balance")
# What is fenced by versions of the database's rows, and those versions.
_FENCED = re.compile(rb"quota:\{([A-Za-z0-9_-]{1,64})\}:(?:tier|account-balance)(?::version)?")
_ID = re.compile(ID_PATTERN.removesuffix("$"))
_ADDRESS = re.compile(ADDRESS_PATTERN.removesuffix("$"))


class TeamKeys(NamedTuple):
    """The names of a team's keys. What each holds: `lua/README.md`."""

    request_tat: str
    token_tat: str
    tier: str
    tier_version: str
    balance: str
    balance_version: str
    input_tat: str
    output_tat: str
    leases: str


class Place(NamedTuple):
    """Where a further limit lives among a team's keys: what follows `quota:{team}:`."""

    suffix: str

    def of(self, team_id: str) -> str:
        """Return the key's name; the team's id was checked."""
        return f"quota:{{{team_id}}}:{self.suffix}"


INPUT_TAT = Place("rate:input_tat")
OUTPUT_TAT = Place("rate:output_tat")
LEASES = Place("leases")


def key_tat(key_id: str, what: str) -> Place:
    """Return where the TAT of an API key's own limit lives; `what` is `request` or `token`."""
    return Place(f"key:{key_id}:{what}_tat")


def model_tat(model: str, what: str) -> Place:
    """Return where the TAT of a team's limit at a model lives; `what` is `request` or `token`."""
    return Place(f"model:{model}:{what}_tat")


def day_counter(start_us: int, end_us: int, what: str) -> Place:
    """Return where a day's `requests` or `tokens` are counted; days of zones differ in length."""
    return Place(f"day:{start_us // _SECOND_US}-{end_us // _SECOND_US}:{what}")


def spend_counter(start_us: int, end_us: int, key_id: str | None) -> Place:
    """Return where the spend of a period is counted: a key's, or with None the whole team's."""
    period = f"spend:{start_us // _SECOND_US}-{end_us // _SECOND_US}"
    return Place(period if key_id is None else f"{period}:key:{key_id}")


def version_of(place: Place) -> Place:
    """Return where the account's version stands that a counted spend belongs to."""
    return Place(f"{place.suffix}:version")


def window_log(group: str, label: str, key_id: str = "") -> Place:
    """Return where a window logs an API key's requests, or, without one, those of an address."""
    return Place(f"window:{group}:{label}" + (f":{key_id}" if key_id else ""))


class Owner(NamedTuple):
    """Whose windows are judged: all keys of one owner share a cluster slot."""

    prefix: str

    def key(self, place: Place) -> str:
        """Return a key's name."""
        return f"{self.prefix}:{place.suffix}"


def team_owner(team_id: str) -> Owner:
    """Return a team as an owner.

    Raises:
        InvalidTeamIdError: a brace, for one, would move the keys to another team's slot.

    """
    if _ID.fullmatch(team_id) is None:
        raise InvalidTeamIdError
    return Owner(f"quota:{{{team_id}}}")


def address_owner(address: str) -> Owner:
    """Return a client's address as an owner; IPv6 networks may stand for one.

    Raises:
        InvalidAddressError: it is none; a brace, for one, would move the keys to another slot.

    """
    if _ADDRESS.fullmatch(address) is None:
        raise InvalidAddressError
    return Owner(f"quota:address:{{{address}}}")


def team_keys(team_id: str) -> TeamKeys:
    """Return the names of a team's keys.

    Raises:
        InvalidTeamIdError: a brace, for one, would move the keys to another team's slot.

    """
    if _ID.fullmatch(team_id) is None:
        raise InvalidTeamIdError
    team = f"quota:{{{team_id}}}"
    return TeamKeys(
        request_tat=f"{team}:rate:request_tat",
        token_tat=f"{team}:rate:token_tat",
        tier=f"{team}:tier",
        tier_version=f"{team}:tier:version",
        balance=f"{team}:account-balance",
        balance_version=f"{team}:account-balance:version",
        input_tat=INPUT_TAT.of(team_id),
        output_tat=OUTPUT_TAT.of(team_id),
        leases=LEASES.of(team_id),
    )


def team_of_balance_key(key: bytes) -> str | None:
    """Return whose balance a key holds; None: it isn't a balance key."""
    match = _BALANCE.fullmatch(key)
    return None if match is None else match[1].decode()


def team_of_fenced_key(key: bytes) -> str | None:
    """Return of whose tier or balance, or of their versions, a key is; None: of none."""
    match = _FENCED.fullmatch(key)
    return None if match is None else match[1].decode()


def life_ms(base_ms: int, jitter_ms: int, rng: random.Random) -> int:
    """Return a life of `base_ms` and up to `jitter_ms` more, so that keys don't die together."""
    return base_ms + rng.randint(0, jitter_ms)
