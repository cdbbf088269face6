"""API keys: made, parsed, judged; a mistyped one is refused without a lookup."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit import keys

PEPPER = "a pepper kept outside the database"
ALPHABET = string.digits + string.ascii_letters


def test_a_new_key_is_recognised_and_matches_only_its_own_hash() -> None:
    key, other = keys.new_key(PEPPER), keys.new_key(PEPPER)
    parsed = keys.parse(key.text)
    assert parsed is not None
    assert parsed.key_id == key.key_id
    assert keys.matches(parsed, key.secret_hash, PEPPER)
    assert not keys.matches(parsed, other.secret_hash, PEPPER)
    assert not keys.matches(parsed, key.secret_hash, "another pepper")


def test_the_format_is_the_published_one() -> None:
    key = keys.new_key(PEPPER)
    assert re.fullmatch(r"qg_[0-9A-Za-z]{16}_[0-9A-Za-z]{49}", key.text)
    assert re.fullmatch(r"[0-9a-f]{64}", key.secret_hash)
    assert key.text.split("_")[1] == key.key_id


def test_a_key_of_the_first_release_still_parses() -> None:
    body = "qg_0123456789abcdef_" + "Z" * 43
    assert keys._checksum(body) == "0sQwA4"
    parsed = keys.parse(body + "0sQwA4")
    assert parsed == keys.ParsedKey(key_id="0123456789abcdef", secret="Z" * 43)
    assert (
        keys.hash_secret("Z" * 43, PEPPER)
        == "329f02b3a31e246f1a76af3e10acd16599b427d00381b2e39e2badf5c0d2cf20"
    )


def test_neither_text_nor_secret_shows_in_a_repr() -> None:
    key = keys.new_key(PEPPER)
    parsed = keys.parse(key.text)
    assert parsed is not None
    for shown in (repr(key), repr(parsed), str(key), str(parsed)):
        assert parsed.secret not in shown


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("qg_", id="only the prefix"),
        pytest.param("sk-proj-abcdefghijklmnopqrstuvwxyz", id="another vendor's key"),
        pytest.param("qg_0123456789abcdef_" + "Z" * 49, id="wrong checksum"),
        pytest.param("qg_0123456789abcdef_" + "Z" * 43, id="no checksum"),
        pytest.param("qg_0123456789abcde٣_" + "Z" * 49, id="a digit that isn't ASCII"),
        pytest.param("x" * 1_000_000, id="a megabyte"),
    ],
)
def test_what_cannot_be_a_key_is_refused(text: str) -> None:
    assert keys.parse(text) is None


@pytest.mark.parametrize("around", [("", "\n"), ("", " "), (" ", ""), ("Bearer ", "")], ids=repr)
def test_nothing_may_stand_around_a_key(around: tuple[str, str]) -> None:
    assert keys.parse(around[0] + keys.new_key(PEPPER).text + around[1]) is None


@given(data=st.data())
def test_any_one_wrong_character_is_refused(data: st.DataObject) -> None:
    text = keys.new_key(PEPPER).text
    position = data.draw(st.integers(0, len(text) - 1))
    wrong = data.draw(st.sampled_from(ALPHABET + "_-").filter(lambda c: c != text[position]))
    assert keys.parse(text[:position] + wrong + text[position + 1 :]) is None


@given(data=st.data())
def test_two_neighbours_exchanged_are_refused(data: st.DataObject) -> None:
    text = keys.new_key(PEPPER).text
    i = data.draw(st.integers(0, len(text) - 2).filter(lambda i: text[i] != text[i + 1]))
    assert keys.parse(text[:i] + text[i + 1] + text[i] + text[i + 2 :]) is None


@given(st.text(max_size=100))
def test_parse_answers_any_text(text: str) -> None:
    assert keys.parse(text) is None


@given(number=st.integers(0, 2**256 - 1))
def test_every_secret_has_its_own_digits(number: int) -> None:
    digits = keys._digits(number, 43)
    assert len(digits) == 43
    value = 0
    for digit in digits:
        value = value * 62 + keys._DIGITS.index(digit)
    assert value == number


@given(st.text(alphabet=ALPHABET, min_size=43, max_size=43))
def test_hashes_are_hex_and_depend_on_the_pepper(secret: str) -> None:
    hashed = keys.hash_secret(secret, PEPPER)
    assert re.fullmatch(r"[0-9a-f]{64}", hashed)
    assert hashed != keys.hash_secret(secret, PEPPER + "x")
