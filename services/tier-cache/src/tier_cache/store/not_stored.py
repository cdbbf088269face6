"""What waits elsewhere comes to, of records that aren't stored: each known by its id, and once."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Exists,
    Integer,
    Numeric,
    Subquery,
    TableValuedAlias,
    Text,
    cast,
    column,
    func,
    literal,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import TypeEngine
from sqlmodel import col

from tables import InferenceRecord, Price
from tables.prices import TOKEN_CLASSES
from tier_cache.domain.days import Share
from tier_cache.domain.spends import Owed

_Types = dict[str, type[TypeEngine[Any]]]
_SHARE: _Types = {
    "inference_id": Text,
    "attempt_no": Integer,
    "requests": Integer,
    "tokens": Numeric,
}
_OWED: _Types = {
    "inference_id": Text,
    "attempt_no": Integer,
    "price_id": Text,
    **dict.fromkeys(TOKEN_CLASSES, BigInteger),
}
_USD_PER_MILLIONTH = literal(Decimal("0.000001"), Numeric)


def uncounted(waiting: Sequence[Share]) -> Subquery:
    """Return one row: the requests and tokens of those shares whose records aren't stored."""
    share = _rows_of([msgspec.structs.asdict(each) for each in waiting], _SHARE, "share")
    return (
        select(*(func.coalesce(func.sum(share.c[n]), 0).label(n) for n in ("requests", "tokens")))
        .where(~_is_stored(share))
        .subquery("uncounted")
    )


def uncharged(waiting: Sequence[Owed]) -> Subquery:
    """Return one row: the USD that those cost whose records aren't stored, at their pinned prices.

    A record without its price will be held, not charged.
    """
    rows = [
        {**msgspec.structs.asdict(each), **msgspec.structs.asdict(each.usage)} for each in waiting
    ]
    owed = _rows_of(rows, _OWED, "owed")
    cost = sum(
        (col(getattr(Price, f"{name}_usd_per_million")) * owed.c[name] for name in TOKEN_CLASSES),
        start=literal(0),
    )
    return (
        select((func.coalesce(func.sum(cost), 0) * _USD_PER_MILLIONTH).label("usd"))
        .select_from(owed)
        .join(Price, cast(col(Price.price_id), Text) == owed.c.price_id)
        .where(~_is_stored(owed))
        .subquery("uncharged")
    )


def _rows_of(rows: Sequence[dict[str, object]], types: _Types, name: str) -> TableValuedAlias:
    # A record that was published twice waits twice.
    once = {(row["inference_id"], row["attempt_no"]): row for row in rows}.values()
    arrays = (literal([row[key] for row in once], ARRAY(kind)) for key, kind in types.items())
    columns = (column(key, kind) for key, kind in types.items())
    return func.unnest(*arrays).table_valued(*columns, name=name).render_derived()


def _is_stored(waiting: TableValuedAlias) -> Exists:
    return (
        select(literal(1))
        .where(
            col(InferenceRecord.inference_id) == waiting.c.inference_id,
            col(InferenceRecord.attempt_no) == waiting.c.attempt_no,
        )
        .exists()
    )
