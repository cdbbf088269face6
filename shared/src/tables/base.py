"""What all tables share: one metadata, names of constraints, the types of ids and amounts."""

from sqlalchemy import CheckConstraint, MetaData, Numeric, Text
from sqlmodel import SQLModel

METADATA = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)
"""The names are those Postgres itself would choose, so that SQL and Python agree unprompted."""

ID = Text(collation="C")
"""An id. Collation C: ORDER BY in SQL and sorted() in Python lock accounts in the same order."""

USD = Numeric(asdecimal=True)
"""An amount in USD: Postgres numeric without precision and scale, so nothing is ever rounded."""


class Base(SQLModel):
    """Base of all tables."""

    metadata = METADATA


def id_check(column: str) -> CheckConstraint:
    """Return the CHECK that keeps an id within the alphabet of subjects and Redis keys."""
    return CheckConstraint(f"{column} ~ '^[A-Za-z0-9_-]{{1,64}}$'", name=column)


def amount_check(column: str, lower_bound: str) -> CheckConstraint:
    """Return the CHECK that an amount is a number: `lower_bound` is `> 0` or `>= 0`.

    Postgres sorts NaN above every number and has infinities; the upper bound refuses both.
    """
    return CheckConstraint(f"{column} {lower_bound} AND {column} < 'Infinity'", name=column)


def limits_check(column: str) -> CheckConstraint:
    """Return the CHECK that limits are an object in which every number can count something.

    Amounts of money and weights are texts in it.
    """
    return CheckConstraint(
        f"jsonb_typeof({column}) = 'object' AND NOT {column}"
        " @? '$.** ? (@ < 0 || @ > 1000000000000000 || @.floor() != @)'",
        name=column,
    )
