"""The account: its row, and `credit` and `debit`, the only ways to change a balance.

Both are thin wrappers over database functions that lock the account, raise its version by one
and write the ledger entry themselves. No role has the right to do any of that by hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Row, Text, TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlmodel import Field

from tables.base import ID, USD, Base
from tables.errors import AmountError, UnknownAccountError
from tables.ledger import Direction, Reason


class Account(Base, table=True):
    """A team's settled balance. Opened with the team, changed by `credit` and `debit` alone."""

    __tablename__ = "account"
    __table_args__ = (
        CheckConstraint(
            "balance_usd > '-Infinity' AND balance_usd < 'Infinity'", name="balance_usd"
        ),
        CheckConstraint("version >= 0", name="version"),
    )

    team_id: str = Field(primary_key=True, sa_type=ID, foreign_key="team.team_id")
    balance_usd: Decimal = Field(
        default=Decimal(0), sa_type=USD, sa_column_kwargs={"server_default": text("0")}
    )
    version: int = Field(
        default=0, sa_type=BigInteger, sa_column_kwargs={"server_default": text("0")}
    )
    """The number of its ledger entries, and so the version of the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """What to credit or debit: an amount in USD above zero, and why."""

    team_id: str
    amount_usd: Decimal
    reason: Reason
    reference: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A ledger entry as it was written; becomes true with the transaction's commit."""

    entry_id: int
    team_id: str
    direction: Direction
    reason: Reason
    amount_usd: Decimal
    balance_after_usd: Decimal
    account_version: int
    reference: str | None
    note: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedAccount:
    """An account that this transaction holds: nobody else changes it before our commit."""

    team_id: str
    balance_usd: Decimal
    version: int


_UNKNOWN_ACCOUNT = "QG001"
_BAD_AMOUNT = "QG002"

_ENTRY_COLUMNS = (
    "e.entry_id, e.team_id, e.direction, e.reason, e.amount_usd, e.balance_after_usd,"
    " e.account_version, e.reference, e.note, e.created_at"
)
# S608: the interpolated columns are the constant above.
_CREDIT = text(
    f"SELECT {_ENTRY_COLUMNS} FROM account_credit("  # noqa: S608
    ":team_id, :reason, :amount_usd, :reference, :note) AS e"
).bindparams(bindparam("amount_usd", type_=USD))
_DEBIT_ADJUSTMENT = text(
    f"SELECT {_ENTRY_COLUMNS} FROM account_debit_adjustment("  # noqa: S608
    ":team_id, :amount_usd, :reference, :note) AS e"
).bindparams(bindparam("amount_usd", type_=USD))
_DEBIT_USAGE = text(
    f"SELECT u.position, {_ENTRY_COLUMNS}"  # noqa: S608
    " FROM (SELECT * FROM unnest(:team_ids, :amounts_usd, :references, :notes)"
    " WITH ORDINALITY AS p (team_id, amount_usd, reference, note, position)"
    " ORDER BY team_id, position) AS u,"
    " LATERAL account_debit_usage(u.team_id, u.amount_usd, u.reference, u.note) AS e"
).bindparams(
    bindparam("team_ids", type_=ARRAY(Text)),
    bindparam("amounts_usd", type_=ARRAY(USD)),
    bindparam("references", type_=ARRAY(Text)),
    bindparam("notes", type_=ARRAY(Text)),
)
_LOCK = text("SELECT team_id, balance_usd, version FROM account_lock(:team_ids)").bindparams(
    bindparam("team_ids", type_=ARRAY(Text))
)


async def credit(connection: AsyncConnection | AsyncSession, posting: Posting) -> Entry:
    """Raise the balance by `posting.amount_usd`; reasons CREDIT and ADJUSTMENT.

    Waits for whoever holds the account, and holds it until the caller's commit. Only the
    control plane's role may.

    Raises:
        UnknownAccountError: the team has no account.
        AmountError: not a finite amount above zero.

    """
    _check(posting, Reason.CREDIT, Reason.ADJUSTMENT)
    return _entry((await _execute(connection, _CREDIT, _parameters(posting)))[0])


async def debit(connection: AsyncConnection | AsyncSession, posting: Posting) -> Entry:
    """Lower the balance by `posting.amount_usd`, below zero if need be; ADJUSTMENT and USAGE.

    Waits for whoever holds the account, and holds it until the caller's commit. ADJUSTMENT is
    for the control plane's role alone, USAGE for settlement's: at commit the usage charges that
    name the entry must add up to its amount.

    Raises:
        UnknownAccountError: the team has no account.
        AmountError: not a finite amount above zero.

    """
    if posting.reason is Reason.USAGE:
        return (await debit_usage(connection, [posting]))[0]
    _check(posting, Reason.ADJUSTMENT)
    return _entry((await _execute(connection, _DEBIT_ADJUSTMENT, _parameters(posting)))[0])


async def debit_usage(
    connection: AsyncConnection | AsyncSession, postings: Sequence[Posting]
) -> list[Entry]:
    """Debit settled usage from several accounts in one round trip, as `debit` does each.

    Accounts are locked in id order; the entries come back in the order of the postings. One
    refused posting refuses all.
    """
    for posting in postings:
        _check(posting, Reason.USAGE)
    rows = await _execute(
        connection,
        _DEBIT_USAGE,
        {
            "team_ids": [posting.team_id for posting in postings],
            "amounts_usd": [posting.amount_usd for posting in postings],
            "references": [posting.reference for posting in postings],
            "notes": [posting.note for posting in postings],
        },
    )
    return [_entry(row) for row in sorted(rows, key=lambda row: int(row.position))]


async def lock_accounts(
    connection: AsyncConnection | AsyncSession, team_ids: Sequence[str]
) -> list[LockedAccount]:
    """Lock those of the accounts that nobody else holds, in id order, until the caller's commit.

    Accounts held by another transaction are skipped, teams without an account are left out.
    """
    rows = await _execute(connection, _LOCK, {"team_ids": list(team_ids)})
    return [
        LockedAccount(team_id=row.team_id, balance_usd=row.balance_usd, version=row.version)
        for row in rows
    ]


def _check(posting: Posting, *reasons: Reason) -> None:
    if posting.reason not in reasons:
        raise ValueError(f"not a reason for this: {posting.reason}")
    if not posting.amount_usd.is_finite() or posting.amount_usd <= 0:
        raise AmountError


def _parameters(posting: Posting) -> dict[str, Any]:
    return {
        "team_id": posting.team_id,
        "reason": str(posting.reason),
        "amount_usd": posting.amount_usd,
        "reference": posting.reference,
        "note": posting.note,
    }


async def _execute(
    connection: AsyncConnection | AsyncSession, statement: TextClause, parameters: dict[str, Any]
) -> Sequence[Row[Any]]:
    if isinstance(connection, AsyncSession):
        connection = await connection.connection()
    try:
        return (await connection.execute(statement, parameters)).all()
    except DBAPIError as error:
        sqlstate = getattr(error.orig, "sqlstate", None)
        if sqlstate == _UNKNOWN_ACCOUNT:
            raise UnknownAccountError from error
        if sqlstate == _BAD_AMOUNT:
            raise AmountError from error
        raise


def _entry(row: Row[Any]) -> Entry:
    return Entry(
        entry_id=row.entry_id,
        team_id=row.team_id,
        direction=Direction(row.direction),
        reason=Reason(row.reason),
        amount_usd=row.amount_usd,
        balance_after_usd=row.balance_after_usd,
        account_version=row.account_version,
        reference=row.reference,
        note=row.note,
        created_at=row.created_at,
    )
