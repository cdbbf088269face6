"""Amounts and instants: read exactly, told exactly, refused where a digit could be lost."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from control_plane.handlers.fields import AMOUNT_PATTERN, AskedInstant, AskedUsd, Usd

ASKED: TypeAdapter[Decimal] = TypeAdapter(AskedUsd)
TOLD: TypeAdapter[Decimal] = TypeAdapter(Usd)
INSTANT: TypeAdapter[datetime] = TypeAdapter(AskedInstant)


@given(st.from_regex(AMOUNT_PATTERN.replace("$", r"\Z"), fullmatch=True))
def test_an_amount_keeps_every_digit(text: str) -> None:
    told = TOLD.dump_python(ASKED.validate_python(text))
    assert Decimal(told) == Decimal(text)
    assert told == "0" or not told.startswith("-0") or "." in told
    assert "E" not in told
    assert "." not in told or not told.endswith("0")


@given(st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.binary()))
def test_what_is_not_a_string_is_no_amount(value: object) -> None:
    with pytest.raises(ValidationError, match="decimal string"):
        ASKED.validate_python(value)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2030-01-31T12:00:00Z", datetime(2030, 1, 31, 12, tzinfo=UTC)),
        ("2030-01-31t12:00:00z", datetime(2030, 1, 31, 12, tzinfo=UTC)),
        ("2030-01-31 12:00:00+00:00", datetime(2030, 1, 31, 12, tzinfo=UTC)),
        ("2030-01-31T01:00:00.000001+02:00", datetime(2030, 1, 30, 23, 0, 0, 1, tzinfo=UTC)),
        ("2030-01-31T12:00:00.5Z", datetime(2030, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_an_instant_is_read_with_its_offset(text: str, instant: datetime) -> None:
    assert INSTANT.validate_python(text) == instant


@pytest.mark.parametrize(
    "value",
    [
        "2030-01-31",
        "2030-01-31T12:00:00",
        "2030-01-31T12:00Z",
        "2030-02-30T12:00:00Z",
        "2030-01-31T25:00:00Z",
        "2030-01-31T12:00:00.1234567Z",
        "2030-01-31T12:00:00Z\n",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "٢٠٣٠-01-31T12:00:00Z",
        "1896091200",
        1_896_091_200,
        1.5,
        True,
        None,
    ],
)
def test_what_is_not_an_instant_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="must be an instant"):
        INSTANT.validate_python(value)
