"""What was spent in periods that have a limit: summed up, and its thresholds told once.

All of it in the transaction that charges, by who holds the accounts.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.control import SPEND_THRESHOLD, SpendThreshold
from contracts.spend import SpendLimit
from kit import log
from kit.money import format_usd
from settlement.domain.spending import (
    Crossing,
    Ended,
    Period,
    SettledSpend,
    Spent,
    TeamLimits,
    crossings,
    limits_by_period,
)
from settlement.store.statements import statement
from tables.outbox import HOLD_SUBJECT, NOTIFY
from tables.spend import WHOLE_TEAM

WEBHOOK_KIND = "spend.threshold"

_LIMITS = statement("spend_limits")
_ADVANCE = statement("advance_spend")
_CROSS = statement("cross_thresholds")
_OWE = statement("owe_events")
_STATES = statement("spend_states")
_KEYS = statement("team_keys")
_FORGET = statement("forget_spend")

# Ledger entries that are summed up in one transaction. A limit that is new in the middle of a month
# may find more; then it takes several.
_MOST_ENTRIES = 1_000
# Rows that are removed in one transaction.
_MOST_ROWS = 5_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_logger = log.get(__name__)


async def limits_of(connection: AsyncConnection, team_ids: Iterable[str]) -> dict[str, TeamLimits]:
    """Return the limits of spend of those of the teams that have any.

    Limits that can't be read are left out: they must not keep their team from being charged, nor
    the limits of another key from being told.
    """
    found = {}
    for row in await connection.execute(_LIMITS, {"team_ids": list(team_ids)}):
        of_keys = {
            key_id: _readable(limits, team_id=row.team_id, key_id=key_id)
            for key_id, limits in row.key_limits.items()
        }
        of_tier = _readable(row.tier_limits, team_id=row.team_id)
        found[row.team_id] = TeamLimits(row.time_zone, of_tier, of_keys)
    return found


def _readable(stored: object, **whose: str) -> tuple[SpendLimit, ...]:
    try:
        return msgspec.convert(stored, tuple[SpendLimit, ...])
    except msgspec.ValidationError as error:
        _logger.warning("limits of spend not readable", **whose, detail=str(error))
        return ()


async def settle_spend(connection: AsyncConnection, ended: Sequence[Ended]) -> SettledSpend:
    """Sum up the periods in which these charged attempts count, and owe what was crossed.

    True with the commit. Teams without limits cost one question.
    """
    teams = await limits_of(connection, sorted({each.team_id for each in ended}))
    if not teams:
        return SettledSpend()
    limits, without = limits_by_period(teams, ended)
    for each in without:
        _logger.warning(
            "spend not counted: no such time",
            team_id=each.team_id,
            time_zone=teams[each.team_id].time_zone,
            ended_at_us=each.ended_at_us,
        )
    spent = await advance(connection, list(limits))
    reached = [each for one in spent for each in crossings(one, limits[one.period])]
    return SettledSpend(spent, await cross(connection, reached))


async def advance(connection: AsyncConnection, periods: Sequence[Period]) -> list[Spent]:
    """Sum up what was settled of some periods, whose accounts this transaction holds."""
    if not periods:
        return []
    return [_spent(row) for row in await connection.execute(_ADVANCE, _wanted(periods))]


async def states(
    connection: AsyncConnection, periods: Sequence[Period]
) -> list[tuple[Spent, bool]]:
    """Return what was settled of some periods, and whether anything of their team is pending."""
    rows = await connection.execute(_STATES, _wanted(periods))
    return [(_spent(row), row.has_pending) for row in rows]


async def forget(connection: AsyncConnection, keep_days: int) -> int:
    """Remove some of the rows of periods that ended so many days ago; return how many."""
    return (
        await connection.execute(_FORGET, {"keep_days": keep_days, "most": _MOST_ROWS})
    ).rowcount


async def keys_of(connection: AsyncConnection, team_ids: Iterable[str]) -> dict[str, Sequence[str]]:
    """Return the ids of the teams' keys; a team without keys is missing."""
    rows = await connection.execute(_KEYS, {"team_ids": list(team_ids)})
    return {row.team_id: row.key_ids for row in rows}


def _wanted(periods: Sequence[Period]) -> dict[str, object]:
    # In one order everywhere, though the accounts that are held keep others away anyhow.
    ordered = sorted(periods, key=lambda one: (one.team_id, one.key_id or "", one.starts_at_us))
    return {
        "team_ids": [one.team_id for one in ordered],
        "api_key_ids": [one.key_id or WHOLE_TEAM for one in ordered],
        "starts_at": [_instant(one.starts_at_us) for one in ordered],
        "ends_at": [_instant(one.ends_at_us) for one in ordered],
        "entries": _MOST_ENTRIES,
    }


def _spent(row: Row[Any]) -> Spent:
    period = Period(
        row.team_id, row.api_key_id or None, _unix_us(row.starts_at), _unix_us(row.ends_at)
    )
    return Spent(period, row.amount_usd, row.account_version, row.is_current)


async def cross(connection: AsyncConnection, reached: Sequence[Crossing]) -> list[Crossing]:
    """Note and owe the thresholds that nobody has told before; return those."""
    if not reached:
        return []
    rows = await connection.execute(_CROSS, _columns(reached))
    crossed_at = {row.message_id: row.crossed_at for row in rows}
    new = [each for each in reached if each.message_id in crossed_at]
    if not new:
        return []
    events = [_event(each, crossed_at) for each in new]
    for subject in sorted({subject for subject, _ in events}):
        await connection.execute(HOLD_SUBJECT, {"subject": subject})
    await connection.execute(
        _OWE,
        {
            "message_ids": [each.message_id for each in new],
            "subjects": [subject for subject, _ in events],
            "payloads": [payload for _, payload in events],
            "kind": WEBHOOK_KIND,
        },
    )
    await connection.execute(NOTIFY)
    return new


def _columns(reached: Sequence[Crossing]) -> dict[str, list[object]]:
    periods = [each.spent.period for each in reached]
    return {
        "message_ids": [each.message_id for each in reached],
        "team_ids": [period.team_id for period in periods],
        "api_key_ids": [period.key_id or WHOLE_TEAM for period in periods],
        "periods": [each.limit.period.value for each in reached],
        "starts_at": [_instant(period.starts_at_us) for period in periods],
        "ends_at": [_instant(period.ends_at_us) for period in periods],
        "limits_usd": [each.limit_usd for each in reached],
        "modes": [each.limit.mode.value for each in reached],
        "percents": [each.percent for each in reached],
        "spent_usd": [each.spent.amount_usd for each in reached],
    }


def _event(each: Crossing, crossed_at: Mapping[str, datetime]) -> tuple[str, bytes]:
    """Return a crossing's subject and its message."""
    period = each.spent.period
    message = SpendThreshold(
        team_id=period.team_id,
        key_id=period.key_id,
        period=each.limit.period,
        starts_at_us=period.starts_at_us,
        ends_at_us=period.ends_at_us,
        limit_usd=each.limit_usd,
        mode=each.limit.mode,
        threshold_percent=each.percent,
        spent_usd=each.spent.amount_usd,
        crossed_at_us=_unix_us(crossed_at[each.message_id]),
    )
    # Receivers of all kinds read it: without exponents, which the short way to write has.
    plain = msgspec.to_builtins(message) | {
        "limit_usd": format_usd(message.limit_usd),
        "spent_usd": format_usd(message.spent_usd),
    }
    return SPEND_THRESHOLD.subject_for(period.team_id), msgspec.json.encode(plain)


def _instant(unix_us: int) -> datetime:
    return _EPOCH + unix_us * _MICROSECOND


def _unix_us(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
