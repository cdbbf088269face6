"""Rows to start a test from, written by the role whose work they are."""

import uuid
from decimal import Decimal
from typing import Any

from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlmodel import col

from tables import ApiKey, InferenceRecord, Price, Team, Tier
from tables.account import Entry, Posting, credit, debit
from tables.ledger import Reason

ONE_DOLLAR_EACH = dict.fromkeys(
    (
        "input_usd_per_million",
        "cache_read_usd_per_million",
        "cache_write_5m_usd_per_million",
        "cache_write_1h_usd_per_million",
        "output_usd_per_million",
        "reasoning_usd_per_million",
    ),
    Decimal(1),
)

_TOKENS = (
    "input_tokens",
    "cache_read_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "output_tokens",
    "reasoning_tokens",
)


def new_name(kind: str) -> str:
    """Return an id that no other test uses."""
    return f"{kind}-{uuid.uuid4().hex}"


async def open_team(control_plane: AsyncEngine) -> str:
    """Make a tier and a team with an empty account; return the team's id."""
    team_id, tier_id = new_name("team"), new_name("tier")
    async with control_plane.begin() as connection:
        await connection.execute(insert(Tier).values(tier_id=tier_id, rpm=60, tpm=60_000))
        await connection.execute(insert(Team).values(team_id=team_id, name="A", tier_id=tier_id))
    return team_id


async def add_key(control_plane: AsyncEngine, team_id: str) -> str:
    """Make an API key of the team; return its public id."""
    key_id = new_name("key")
    async with control_plane.begin() as connection:
        await connection.execute(
            insert(ApiKey).values(key_id=key_id, team_id=team_id, name="k", secret_hash=bytes(32))
        )
    return key_id


async def add_price(control_plane: AsyncEngine) -> uuid.UUID:
    """Make a price of one USD per million tokens of every class; return its id."""
    async with control_plane.begin() as connection:
        price_id: uuid.UUID = (
            await connection.execute(
                insert(Price)
                .values(
                    provider="fake",
                    model=new_name("model"),
                    effective_from=text("now()"),
                    **ONE_DOLLAR_EACH,
                )
                .returning(col(Price.price_id))
            )
        ).scalar_one()
    return price_id


def record_values(team_id: str, **changes: Any) -> dict[str, Any]:
    """Return the columns of a pending record of ten input tokens."""
    values = {
        "inference_id": new_name("inference"),
        "attempt_no": 1,
        "team_id": team_id,
        "api_key_id": "key",
        "endpoint": "/v1/chat/completions",
        "provider": "fake",
        "model_asked": "model",
        "outcome": "succeeded",
        "usage_source": "provider",
        **dict.fromkeys(_TOKENS, 0),
        "input_tokens": 10,
        "streaming": False,
        "client_gone": False,
        "started_at": text("now()"),
        "state": "PENDING",
        "stream_sequence": 1,
    }
    return values | changes


async def add_record(settlement: AsyncEngine, team_id: str, **changes: Any) -> int:
    """Store a pending record; return its id."""
    async with settlement.begin() as connection:
        record_id = (
            await connection.execute(
                insert(InferenceRecord)
                .values(**record_values(team_id, **changes))
                .returning(col(InferenceRecord.record_id))
            )
        ).scalar_one()
    assert record_id is not None
    return record_id


async def charge(
    connection: AsyncConnection,
    team_id: str,
    price_id: uuid.UUID,
    entry: Entry | None,
    amounts_usd: dict[int, Decimal],
) -> None:
    """Insert usage charges by record id, in one statement."""
    await connection.execute(
        text(
            "INSERT INTO usage_charge"
            " (inference_record_id, team_id, price_id, amount_usd, ledger_entry_id)"
            " SELECT r, :team, :price, a, :entry"
            " FROM unnest(CAST(:records AS bigint[]), CAST(:amounts AS numeric[])) AS u (r, a)"
        ),
        {
            "team": team_id,
            "price": price_id,
            "entry": None if entry is None else entry.entry_id,
            "records": list(amounts_usd),
            "amounts": list(amounts_usd.values()),
        },
    )


async def pay_in(control_plane: AsyncEngine, team_id: str, amount_usd: str) -> Entry:
    """Credit the team."""
    async with control_plane.begin() as connection:
        return await credit(
            connection,
            Posting(team_id=team_id, amount_usd=Decimal(amount_usd), reason=Reason.CREDIT),
        )


async def settle_one(
    settlement: AsyncEngine, team_id: str, price_id: uuid.UUID, amount_usd: Decimal
) -> Entry:
    """Settle one new record for an amount, as settlement would; return the entry."""
    record_id = await add_record(settlement, team_id)
    async with settlement.begin() as connection:
        entry = await debit(
            connection, Posting(team_id=team_id, amount_usd=amount_usd, reason=Reason.USAGE)
        )
        await charge(connection, team_id, price_id, entry, {record_id: amount_usd})
        await connection.execute(
            text(
                "UPDATE inference_record SET state = 'SETTLED', settled_at = now()"
                " WHERE record_id = :record"
            ),
            {"record": record_id},
        )
    return entry
