"""The text of API keys: `qg_<key id>_<secret><checksum>`, made once, judged without storing it.

The key id is public and finds the key. The secret is 256 random bits, kept only as its HMAC under
a pepper that never enters the database. The checksum (CRC-32 of all that stands before it) refuses
a mistyped or cut-off key before anybody is asked; it protects nothing and hides nothing.
All three are written in the digits `0-9A-Za-z`, so a double click selects the whole key.
"""

import hmac
import re
import secrets
import string
import zlib
from dataclasses import dataclass, field

PREFIX = "qg_"

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_KEY_ID_LENGTH = 16
_SECRET_BITS = 256
_SECRET_LENGTH = 43  # 62⁴³ > 2²⁵⁶
_CHECKSUM_LENGTH = 6  # 62⁶ > 2³²
_TEXT = re.compile(
    rf"{PREFIX}(?P<key_id>[0-9A-Za-z]{{{_KEY_ID_LENGTH}}})"
    rf"_(?P<secret>[0-9A-Za-z]{{{_SECRET_LENGTH}}})(?P<checksum>[0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key at the only moment its text exists outside its holder's hands."""

    key_id: str
    text: str = field(repr=False)
    """What the holder sends; shown once, stored nowhere."""
    secret_hash: str
    """HMAC-SHA256 of the secret under the pepper, 64 hexadecimal digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedKey:
    """A well-formed key as a client sent it; whether it is right, :func:`matches` says."""

    key_id: str
    secret: str = field(repr=False)


def new_key(pepper: str) -> NewKey:
    """Make a key."""
    return new_secret("".join(secrets.choice(_DIGITS) for _ in range(_KEY_ID_LENGTH)), pepper)


def new_secret(key_id: str, pepper: str) -> NewKey:
    """Make a new secret for a key that has its id."""
    secret = _digits(secrets.randbits(_SECRET_BITS), _SECRET_LENGTH)
    body = f"{PREFIX}{key_id}_{secret}"
    return NewKey(
        key_id=key_id, text=body + _checksum(body), secret_hash=hash_secret(secret, pepper)
    )


def parse(text: str) -> ParsedKey | None:
    """Return the parts of a key's text; None: it can't be a key of ours, look nothing up."""
    match = _TEXT.fullmatch(text)
    if match is None or match["checksum"] != _checksum(text[:-_CHECKSUM_LENGTH]):
        return None
    return ParsedKey(key_id=match["key_id"], secret=match["secret"])


def hash_secret(secret: str, pepper: str) -> str:
    """Return the HMAC-SHA256 of the secret under the pepper, 64 hexadecimal digits."""
    return hmac.digest(pepper.encode(), secret.encode(), "sha256").hex()


def matches(parsed: ParsedKey, secret_hash: str, pepper: str) -> bool:
    """Say whether the key has the secret of that hash, in time that doesn't depend on either."""
    return hmac.compare_digest(
        hash_secret(parsed.secret, pepper).encode(), secret_hash.lower().encode()
    )


def _checksum(body: str) -> str:
    return _digits(zlib.crc32(body.encode()), _CHECKSUM_LENGTH)


def _digits(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, remainder = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[remainder])
    return "".join(reversed(digits))
