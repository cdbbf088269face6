"""The types of the API's fields: what is refused, how it is written, what OpenAPI says of it.

An amount is a decimal string in both directions. A JSON number is refused: most clients would
have read it as a binary fraction before it got here.
"""

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from contracts.ids import ID_PATTERN
from contracts.usage import MOST_USD_PER_MILLION
from kit.money import format_usd

AMOUNT_PATTERN = r"^-?(0|[1-9][0-9]{0,9})(\.[0-9]{1,30})?$"
_AMOUNT = re.compile(AMOUNT_PATTERN.rstrip("$"), re.ASCII)
_INSTANT = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


class Asked(BaseModel):
    """Base of what clients send: an unknown field is refused, not ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Told(BaseModel):
    """Base of what clients get."""

    model_config = ConfigDict(frozen=True)


def _read_amount(value: object) -> Decimal:
    if isinstance(value, str) and _AMOUNT.fullmatch(value):
        return Decimal(value)
    raise PydanticCustomError(
        "amount", 'must be a decimal string such as "12.50" (a string, not a JSON number)'
    )


def _above_zero(amount: Decimal) -> Decimal:
    if amount <= 0:
        raise PydanticCustomError("amount_above_zero", "must be above zero")
    return amount


def _not_zero(amount: Decimal) -> Decimal:
    if amount == 0:
        raise PydanticCustomError("amount_not_zero", "must not be zero")
    return amount


def _price(amount: Decimal) -> Decimal:
    if not 0 <= amount <= MOST_USD_PER_MILLION:
        raise PydanticCustomError(
            "price", "must be between 0 and {maximum}", {"maximum": str(MOST_USD_PER_MILLION)}
        )
    return amount


def _read_instant(value: object) -> datetime:
    if isinstance(value, str) and _INSTANT.fullmatch(value):
        try:
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            pass  # the 31st of February, say
    raise PydanticCustomError(
        "instant", 'must be an instant with its offset such as "2030-01-31T12:00:00Z"'
    )


_AMOUNT_SCHEMA = {"type": "string", "pattern": AMOUNT_PATTERN, "examples": ["12.50"]}
_INSTANT_SCHEMA = {"type": "string", "format": "date-time", "examples": ["2030-01-31T12:00:00Z"]}

AskedUsd = Annotated[Decimal, BeforeValidator(_read_amount), WithJsonSchema(_AMOUNT_SCHEMA)]
PositiveUsd = Annotated[AskedUsd, AfterValidator(_above_zero)]
SignedUsd = Annotated[AskedUsd, AfterValidator(_not_zero)]
PriceUsd = Annotated[AskedUsd, AfterValidator(_price)]
AskedInstant = Annotated[datetime, BeforeValidator(_read_instant), WithJsonSchema(_INSTANT_SCHEMA)]

Usd = Annotated[
    Decimal,
    PlainSerializer(format_usd, return_type=str),
    WithJsonSchema(
        {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$", "examples": ["9.99982"]}
    ),
]
"""An amount as it is told: every digit, no exponent, no trailing zeros."""

Id = Annotated[str, Field(pattern=ID_PATTERN, examples=["demo"])]
"""An id: letters, digits, `_` and `-`, 64 at most; it becomes part of subjects and Redis keys."""

# Postgres text can't hold NUL, and nobody can read the other control characters.
_LINE = r"^[^\x00-\x1f\x7f]+$"
Name = Annotated[str, Field(pattern=_LINE, max_length=200)]
Sentence = Annotated[str, Field(pattern=_LINE, max_length=500)]
Provider = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$", examples=["openai"])]
Model = Annotated[str, Field(pattern=r"^[!-~]{1,200}$", examples=["gpt-4o-mini"])]
"""A provider's or a route's model name: printable ASCII without spaces."""
