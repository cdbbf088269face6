"""Decides about held records. Every decision is kept in the database, with its note."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quotagate import stores
from quotagate.statements import statement
from quotagate.stores import StoreSettings
from tables.decisions import Decision

_DECIDE = statement(Path(__file__).with_name("sql"), "decide")


@dataclass(frozen=True, slots=True)
class Decided:
    """Which of the records were decided about."""

    done: tuple[int, ...]
    not_held: tuple[int, ...]
    """Unknown, or in another state: nothing was done about them."""


async def release(
    settings: StoreSettings, record_ids: Sequence[int], note: str, price_id: uuid.UUID | None = None
) -> Decided:
    """Have settlement charge the records as they are, by another price if one is named.

    Settlement takes them up within a second; what still can't be charged it holds again.

    Raises:
        CannotTellError: the database doesn't answer or refuses, and nothing was done; such as where
            the price was not in effect for the model of one of them.

    """
    return await _decide(settings, record_ids, Decision.RELEASED, note, price_id)


async def write_off(settings: StoreSettings, record_ids: Sequence[int], note: str) -> Decided:
    """Have nobody pay for the records.

    Raises:
        CannotTellError: the database doesn't answer or refuses, and nothing was done.

    """
    return await _decide(settings, record_ids, Decision.WRITTEN_OFF, note, None)


async def _decide(
    settings: StoreSettings,
    record_ids: Sequence[int],
    decision: Decision,
    note: str,
    price_id: uuid.UUID | None,
) -> Decided:
    parameters = {
        "record_ids": list(record_ids),
        "decision": decision.value,
        "price_id": price_id,
        "note": note,
    }
    async with stores.database(settings) as engine, engine.begin() as connection:
        done = set((await connection.execute(_DECIDE, parameters)).scalars())
    return Decided(tuple(sorted(done)), tuple(sorted(set(record_ids) - done)))
