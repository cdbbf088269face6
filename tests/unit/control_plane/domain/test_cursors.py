"""Cursors come back as they were made, and nothing else passes for one."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.domain.cursors import Key, Part, decode, encode
from control_plane.domain.errors import InvalidError

INSTANTS = st.datetimes(timezones=st.just(UTC))
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1)
NUMBERS = st.integers(-(2**63) + 1, 2**63 - 1)


@given(st.lists(st.one_of(INSTANTS, NAMES, NUMBERS), max_size=4))
def test_a_cursor_comes_back_as_it_was_made(parts: list[Part]) -> None:
    key: Key = tuple(parts)
    cursor = encode("things", key)
    assert cursor.isascii()
    assert not set(cursor) & set("+/= ")
    assert decode(cursor, "things", tuple(type(part) for part in key)) == key


@given(st.text())
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidError) as caught:
        decode(text, "things", (str,))
    assert caught.value.field == "cursor"


@given(st.binary())
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidError):
        decode(data.hex(), "things", (int, str))


@pytest.mark.parametrize(
    ("cursor", "types"),
    [
        pytest.param(encode("others", ("a",)), (str,), id="another list's"),
        pytest.param(encode("things", ("a",)), (int,), id="a name for a number"),
        pytest.param(encode("things", (7,)), (str,), id="a number for a name"),
        pytest.param(encode("things", (True,)), (int,), id="a truth for a number"),
        pytest.param(encode("things", ("a", "b")), (str,), id="one part more"),
        pytest.param(encode("things", ()), (str,), id="one part less"),
        pytest.param(encode("things", (2**63,)), (int,), id="a number beyond 64 bits"),
        pytest.param(encode("things", (2**62,)), (datetime,), id="an instant beyond the calendar"),
        pytest.param(encode("things", ("ä",)), (str,), id="not ASCII"),
    ],
)
def test_a_cursor_that_does_not_fit_is_refused(cursor: str, types: tuple[type[Part], ...]) -> None:
    with pytest.raises(InvalidError):
        decode(cursor, "things", types)
