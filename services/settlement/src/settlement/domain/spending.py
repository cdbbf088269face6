"""Who has limits of spend, which periods a charge counts in, and which thresholds were crossed."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from contracts.spend import SpendLimit, SpendPeriod, SpendScope
from kit.calendar import CalendarError, days_around, months_around
from kit.money import exact_product, format_usd

_PERCENT = Decimal(100)


@dataclass(frozen=True, slots=True)
class TeamLimits:
    """The limits of spend of a team: its tier's, and those that single keys have of their own."""

    time_zone: str
    tier: tuple[SpendLimit, ...]
    keys: Mapping[str, tuple[SpendLimit, ...]] = field(default_factory=dict)

    def met_by(self, key_id: str) -> Iterator[SpendLimit]:
        """Return the limits of a key's calls; a key's own replaces that of every key."""
        own = self.keys.get(key_id, ())
        replaced = {limit.period for limit in own}
        for limit in self.tier:
            if limit.scope is SpendScope.TEAM or limit.period not in replaced:
                yield limit
        yield from own


@dataclass(frozen=True, slots=True)
class Period:
    """A calendar day or month of a team, or of one of its keys; unix microseconds."""

    team_id: str
    key_id: str | None
    """None: the whole team."""
    starts_at_us: int
    ends_at_us: int


@dataclass(frozen=True, slots=True)
class Ended:
    """When an attempt of a key of a team ended, by the edge's clock: there its charge counts."""

    team_id: str
    key_id: str
    ended_at_us: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What was settled of a period as of a version of the account; `is_current`: its last one."""

    period: Period
    amount_usd: Decimal
    version: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class Crossing:
    """A threshold of a limit that the settled spend of a period has reached."""

    spent: Spent
    limit: SpendLimit
    limit_usd: Decimal
    percent: int

    @property
    def message_id(self) -> str:
        """The same for whoever finds it crossed, and however often."""
        period = self.spent.period
        told = (
            period.team_id,
            period.key_id or "",
            self.limit.period,
            period.starts_at_us,
            period.ends_at_us,
            format_usd(self.limit_usd),
            self.percent,
        )
        return "spend-" + hashlib.sha256(repr(tuple(map(str, told))).encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class SettledSpend:
    """What a transaction summed up, and which thresholds were crossed for the first time."""

    spent: Sequence[Spent] = ()
    crossed: Sequence[Crossing] = ()


def limits_by_period(
    teams: Mapping[str, TeamLimits], ended: Iterable[Ended]
) -> tuple[dict[Period, SpendLimit], list[Ended]]:
    """Return the periods in which these attempts' charges count, each with its limit.

    And the attempts that no period can be told of: their time zone is unknown on this machine, or
    their edge's clock showed no possible time.
    """
    found: dict[Period, SpendLimit] = {}
    without: list[Ended] = []
    for each in ended:
        team = teams.get(each.team_id)
        if team is None:
            continue
        try:
            for limit in team.met_by(each.key_id):
                if limit.limit_usd is not None:
                    found[_period(each, limit, team.time_zone)] = limit
        except CalendarError:
            without.append(each)
    return found, without


def current_periods(
    team_id: str, limits: TeamLimits, key_ids: Iterable[str], now_us: int
) -> dict[Period, SpendLimit]:
    """Return the periods of a team and of these keys of it that a moment (unix µs) is in.

    Each with its limit.

    Raises:
        kit.calendar.CalendarError: the team's time zone is unknown on this machine.

    """
    # The team's hold for it also where none of its keys is known.
    nobodys = Ended(team_id, "", now_us)
    whole = {
        _period(nobodys, limit, limits.time_zone): limit
        for limit in limits.tier
        if limit.scope is SpendScope.TEAM and limit.limit_usd is not None
    }
    now = [Ended(team_id, key_id, now_us) for key_id in key_ids]
    return whole | limits_by_period({team_id: limits}, now)[0]


def _period(ended: Ended, limit: SpendLimit, time_zone: str) -> Period:
    around = days_around if limit.period is SpendPeriod.DAY else months_around
    starts_at_us, ends_at_us = around(ended.ended_at_us, time_zone).period_of(ended.ended_at_us)
    key_id = ended.key_id if limit.scope is SpendScope.KEY else None
    return Period(ended.team_id, key_id, starts_at_us, ends_at_us)


def crossings(spent: Spent, limit: SpendLimit) -> Iterator[Crossing]:
    """Return every threshold of a limit that is reached.

    A limit of 0 has none: there is nothing to warn of. What was settled as of an earlier version
    is never more than what is settled now, so it is told as well.
    """
    limit_usd = limit.limit_usd
    if not limit_usd:
        return
    reached = exact_product(spent.amount_usd, _PERCENT)
    for percent in sorted(limit.thresholds):
        if reached >= exact_product(limit_usd, Decimal(percent)):
            yield Crossing(spent, limit, limit_usd, percent)
