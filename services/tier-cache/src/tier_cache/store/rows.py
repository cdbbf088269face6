"""What is selected from the database, and its rows as the values that cross the bus."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import (
    DateTime,
    Executable,
    Row,
    Text,
    func,
    literal,
    select,
    true,
)
from sqlalchemy.orm import aliased
from sqlmodel import col

from contracts.admission import KeyLimits, Policy
from contracts.cache import KeyFacts
from contracts.usage import Price as PriceVersion
from contracts.usage import UsdPerMillion
from tables import Account, ApiKey, InferenceRecord, Price, Team, Tier
from tables.prices import TOKEN_CLASSES
from tables.spend import WHOLE_TEAM
from tier_cache.domain.days import Day, Share
from tier_cache.domain.spends import Owed
from tier_cache.store.not_stored import uncharged, uncounted

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

# Who pins a price compares `effective_from` with its own clock. Were that clock behind the
# database's, the version it still needs would be missing without this.
_CLOCKS_APART = timedelta(hours=1)

# No attempt takes longer, so tokens of one that ended on a day are found by when it began.
_LONGEST_ATTEMPT = timedelta(days=1)
_TOKENS = sum(
    (func.coalesce(col(getattr(InferenceRecord, f"{name}_tokens")), 0) for name in TOKEN_CLASSES),
    start=literal(0),
)

_team_exists = col(Team.deleted_at).is_(None)
_later = aliased(Price)

KEYS = select(ApiKey).join(Team, col(Team.team_id) == col(ApiKey.team_id)).where(_team_exists)
TEAM_TIERS = select(col(Team.tier_id), col(Team.tier_version)).where(_team_exists)
TEAM_BALANCES = (
    select(col(Account.balance_usd), col(Account.version))
    .join(Team, col(Team.team_id) == col(Account.team_id))
    .where(_team_exists)
)
TIERS = select(Tier)

CURRENT_PRICES = select(Price).where(
    ~select(col(_later.price_id))
    .where(
        col(_later.provider) == col(Price.provider),
        col(_later.model) == col(Price.model),
        col(_later.effective_from) > col(Price.effective_from),
        col(_later.effective_from) <= func.now() - _CLOCKS_APART,
    )
    .exists()
)
"""Of each provider and model: the version in effect an hour ago, and every later one."""


def day_usage(team_id: str, day: Day, waiting: Sequence[Share]) -> Executable:
    """Return the statement of what a team used on a day.

    Of stored records, whatever their state, a request counts when it began and its tokens when it
    ended, as in `domain/days.py`; `waiting` are shares of records that may be stored or not, and
    count where they aren't. No row: there is no such team.
    """
    start, end = instant(day.start_us), instant(day.end_us)
    began, ended = (
        col(InferenceRecord.started_at),
        func.coalesce(col(InferenceRecord.finished_at), col(InferenceRecord.started_at)),
    )
    is_first = (col(InferenceRecord.attempt_no) == 1) & (began >= start)
    is_ended_today = (ended >= start) & (ended < end)
    used = (
        select(
            func.count().filter(is_first).label("requests"),
            func.coalesce(func.sum(_TOKENS).filter(is_ended_today), 0).label("tokens"),
        )
        .where(
            col(InferenceRecord.team_id) == col(Team.team_id),
            began >= start - _LONGEST_ATTEMPT,
            began < end,
        )
        .lateral()
    )
    not_stored = uncounted(waiting)
    return (
        select(
            (used.c.requests + not_stored.c.requests).label("requests"),
            (used.c.tokens + not_stored.c.tokens).label("tokens"),
        )
        .select_from(Team)
        .join(used, true())
        .join(not_stored, true())
        .where(_team_exists, col(Team.team_id) == team_id)
    )


def spend_of(team_id: str, key_id: str | None, period: Day, waiting: Sequence[Owed]) -> Executable:
    """Return the statement of what was spent in a period; key None: by the whole team.

    A charge counts when its attempt ended. `waiting` are records that may be stored or not, and
    count where they aren't. No row: there is no such team.
    """
    spent = (
        func.spend_of(
            literal(team_id, Text),
            literal(WHOLE_TEAM if key_id is None else key_id, Text),
            literal(instant(period.start_us), DateTime(timezone=True)),
            literal(instant(period.end_us), DateTime(timezone=True)),
        )
        .table_valued("settled_usd", "pending_usd", "account_version")
        .alias("spent")
    )
    not_stored = uncharged(waiting)
    return (
        select(
            spent.c.settled_usd,
            (spent.c.pending_usd + not_stored.c.usd).label("pending_usd"),
            spent.c.account_version,
        )
        .select_from(spent)
        .join(not_stored, true())
    )


def instant(unix_us: int) -> datetime:
    """Return the instant of unix microseconds."""
    return _EPOCH + unix_us * _MICROSECOND


def unix_us(moment: datetime) -> int:
    """Return unix microseconds; timestamptz has microseconds, so this is exact."""
    return (moment - _EPOCH) // _MICROSECOND


def key_facts(row: Row[Any]) -> KeyFacts:
    """Return what the edge needs of an API key.

    Raises:
        msgspec.ValidationError: a limit has no possible value.

    """
    return KeyFacts(
        key_id=row.key_id,
        team_id=row.team_id,
        secret_hash=row.secret_hash.hex(),
        expires_at_us=None if row.expires_at is None else unix_us(row.expires_at),
        revoked=row.revoked_at is not None,
        allowed_models=None if row.allowed_models is None else tuple(row.allowed_models),
        limits=msgspec.convert(row.limits, KeyLimits) if row.limits else None,
        old_secret_hash=None if row.old_secret_hash is None else row.old_secret_hash.hex(),
        old_secret_until_us=(
            None if row.old_secret_until is None else unix_us(row.old_secret_until)
        ),
    )


def policy(row: Row[Any]) -> Policy:
    """Return a tier's numbers; its further limits bear the names that a policy gives them.

    Raises:
        msgspec.ValidationError: a limit has no possible value.

    """
    numbers = {
        "tier_id": row.tier_id,
        "rpm": row.rpm,
        "tpm": row.tpm,
        "request_burst": row.request_burst,
        "token_burst": row.token_burst,
    }
    return msgspec.convert({**row.limits, **numbers}, Policy)


def price(row: Row[Any]) -> PriceVersion:
    """Return a price version."""
    return PriceVersion(
        price_id=str(row.price_id),
        provider=row.provider,
        model=row.model,
        usd_per_million=UsdPerMillion(
            input=row.input_usd_per_million,
            cache_read=row.cache_read_usd_per_million,
            cache_write_5m=row.cache_write_5m_usd_per_million,
            cache_write_1h=row.cache_write_1h_usd_per_million,
            output=row.output_usd_per_million,
            reasoning=row.reasoning_usd_per_million,
        ),
        effective_from_us=unix_us(row.effective_from),
    )
