"""A database in which everything is in order, written by the roles whose work it is.

Three teams have a ledger, one has none. Team `a` has records in every state, amounts of many
digits, a charge of zero, and two versions of one price with the same numbers.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from integration.quotagate.scratch import Scratch
from integration.tables.rows import add_record
from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from kit.money import exact_sum, tokens_cost_usd
from tables import Price, Team, Tier
from tables.account import Posting, credit, debit
from tables.ledger import Reason

SMALL, SMALL_AGAIN, LARGE, FREE = (uuid.UUID(int=number) for number in (1, 2, 3, 4))

_LONG = Decimal("3.14159265358979323846264338327950288419716939937510")
_USD_PER_MILLION: Mapping[uuid.UUID, tuple[str, str, Sequence[Decimal]]] = MappingProxyType(
    {
        SMALL: (
            "small",
            "2026-01-01",
            [Decimal(n) for n in ("0.15", "0.075", "0", "0", "0.6", "0")],
        ),
        SMALL_AGAIN: (
            "small",
            "2026-02-01",
            [Decimal(n) for n in ("0.15", "0.075", "0", "0", "0.6", "0")],
        ),
        LARGE: ("large", "2026-01-01", [_LONG, _LONG, _LONG, _LONG, _LONG, _LONG]),
        FREE: ("free", "2026-01-01", [Decimal(0)] * 6),
    }
)
_CLASSES = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A record to settle: its inference id, its price, and its tokens by class."""

    inference_id: str
    price: uuid.UUID
    tokens: tuple[int, int, int, int, int, int]

    @property
    def due_usd(self) -> Decimal:
        """What it costs, by Python's exact decimals."""
        prices = _USD_PER_MILLION[self.price][2]
        return exact_sum(*map(tokens_cost_usd, self.tokens, prices))


_SETTLED: Mapping[str, Sequence[Sequence[Attempt]]] = MappingProxyType(
    {
        "a": (
            (
                Attempt("a-1", SMALL, (900, 0, 0, 0, 100, 0)),
                Attempt("a-2", LARGE, (1, 2, 3, 4, 5, 6)),
            ),
            (Attempt("a-3", LARGE, (987_654_321, 0, 0, 0, 123_456_789, 1)),),
            (Attempt("a-free", FREE, (10, 0, 0, 0, 10, 0)),),
        ),
        "b": ((Attempt("b-1", SMALL, (1, 1, 0, 0, 1, 0)),),),
        "d": ((Attempt("d-1", SMALL, (5, 5, 0, 0, 5, 0)),),),
    }
)
CHARGED_USD = exact_sum(
    *(attempt.due_usd for batches in _SETTLED.values() for batch in batches for attempt in batch)
)
OTHER_ENTRIES_USD = Decimal("115.499999999999999999")


async def write_true_books(scratch: Scratch) -> None:
    """Write all of it into a migrated database."""
    desk, settlement = scratch.engine("control_plane"), scratch.engine("settlement")
    async with desk.begin() as connection:
        await connection.execute(insert(Tier).values(tier_id="tier", rpm=60, tpm=60_000))
        for team_id in ("a", "b", "d", "idle"):
            await connection.execute(
                insert(Team).values(team_id=team_id, name=team_id, tier_id="tier")
            )
        for price_id in _USD_PER_MILLION:
            await _add_price(connection, price_id)
    await _pay(desk, "a", "100")
    first, *others = _SETTLED["a"]
    await _settle(settlement, "a", *first)
    await _adjust(desk, "a", "-0.000000000000000001")
    await _adjust(desk, "a", "0.5")
    for batch in others:
        await _settle(settlement, "a", *batch)
    await _pay(desk, "b", "10")
    await _settle(settlement, "b", *_SETTLED["b"][0])
    await _pay(desk, "d", "5")
    await _settle(settlement, "d", *_SETTLED["d"][0])
    async with desk.begin() as connection:
        await connection.execute(text("UPDATE team SET deleted_at = now() WHERE team_id = 'd'"))
    await _add_unsettled(settlement)
    async with settlement.begin() as connection:
        for key in ("", "key", "another"):
            await connection.execute(_ADD_SPEND, {"key": key})


_ADD_SPEND = text(
    "INSERT INTO spend (team_id, api_key_id, starts_at, ends_at, amount_usd, account_version)"
    " SELECT 'd', :key, day, day + interval '1 day', settled.*"
    " FROM (SELECT date_trunc('day', now()) AS day) AS today,"
    " spend_settled('d', :key, day, day + interval '1 day', 1000) AS settled"
)


async def _add_price(connection: AsyncConnection, price_id: uuid.UUID) -> None:
    model, effective_from, prices = _USD_PER_MILLION[price_id]
    await connection.execute(
        insert(Price).values(
            price_id=price_id,
            provider="fake",
            model=model,
            effective_from=text(f"'{effective_from}'"),
            **{f"{c}_usd_per_million": p for c, p in zip(_CLASSES, prices, strict=True)},
        )
    )


async def _pay(desk: AsyncEngine, team_id: str, amount_usd: str) -> None:
    posting = Posting(team_id=team_id, amount_usd=Decimal(amount_usd), reason=Reason.CREDIT)
    async with desk.begin() as connection:
        await credit(connection, posting)


async def _adjust(desk: AsyncEngine, team_id: str, amount_usd: str) -> None:
    amount = Decimal(amount_usd)
    posting = Posting(team_id=team_id, amount_usd=abs(amount), reason=Reason.ADJUSTMENT)
    async with desk.begin() as connection:
        await (credit if amount > 0 else debit)(connection, posting)


async def _settle(settlement: AsyncEngine, team_id: str, *attempts: Attempt) -> None:
    """Charge records as settlement does: one debit, and none where all is free."""
    record_ids = [await _add(settlement, team_id, attempt) for attempt in attempts]
    total = exact_sum(*(attempt.due_usd for attempt in attempts))
    async with settlement.begin() as connection:
        entry_id = None
        if total:
            posting = Posting(team_id=team_id, amount_usd=total, reason=Reason.USAGE)
            entry_id = (await debit(connection, posting)).entry_id
        await connection.execute(
            text(
                "INSERT INTO usage_charge"
                " (inference_record_id, team_id, price_id, amount_usd, ledger_entry_id)"
                " SELECT r, :team, p, a, :entry FROM unnest("
                "CAST(:records AS bigint[]), CAST(:prices AS uuid[]), CAST(:amounts AS numeric[]))"
                " AS u (r, p, a)"
            ),
            {
                "team": team_id,
                "entry": entry_id,
                "records": record_ids,
                "prices": [attempt.price for attempt in attempts],
                "amounts": [attempt.due_usd for attempt in attempts],
            },
        )
        await connection.execute(
            text(
                "UPDATE inference_record SET state = 'SETTLED', settled_at = now()"
                " WHERE record_id = ANY (CAST(:records AS bigint[]))"
            ),
            {"records": record_ids},
        )


async def _add(settlement: AsyncEngine, team_id: str, attempt: Attempt) -> int:
    tokens = {f"{c}_tokens": n for c, n in zip(_CLASSES, attempt.tokens, strict=True)}
    return await add_record(
        settlement,
        team_id,
        inference_id=attempt.inference_id,
        model_sent=_USD_PER_MILLION[attempt.price][0],
        price_id=str(attempt.price),
        **tokens,
    )


async def _add_unsettled(settlement: AsyncEngine) -> None:
    unknown = dict.fromkeys((f"{c}_tokens" for c in _CLASSES), None)
    await add_record(
        settlement,
        "a",
        inference_id="a-failed",
        outcome="failed",
        usage_source="missing",
        state="UNBILLABLE",
        status_code=500,
        **unknown,
    )
    await add_record(
        settlement,
        "a",
        inference_id="a-held",
        state="HELD",
        held_reason="absurd_usage",
        input_tokens=10**12,
    )
    await add_record(settlement, "b", inference_id="b-pending", price_id=str(SMALL))
