"""Cursors of paged lists: opaque to clients, so that what they hold may change.

A cursor names its list and the sort key of the last item of a page; the next page begins after
it, whatever was added or removed meanwhile.
"""

import base64
import binascii
import json
from datetime import datetime

from control_plane.domain.errors import InvalidError
from control_plane.domain.instants import from_unix_us, unix_us

Part = int | str | datetime
Key = tuple[Part, ...]
"""A sort key. Instants are kept as unix microseconds, so they come back exactly."""

_MAX_INT = 2**63 - 1


def encode(list_name: str, key: Key) -> str:
    """Return the cursor of a place in a list."""
    parts = [unix_us(part) if isinstance(part, datetime) else part for part in key]
    data = json.dumps([list_name, *parts], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(cursor: str, list_name: str, types: tuple[type[Part], ...]) -> Key:
    """Return the sort key in a cursor of this list, with parts of these types.

    Raises:
        InvalidError: not one of our cursors, or one of another list.

    """
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars="-_", validate=True)
        name, *parts = json.loads(data)
        if name == list_name and len(parts) == len(types):
            return tuple(_part(part, wanted) for part, wanted in zip(parts, types, strict=True))
    except (binascii.Error, ValueError, TypeError, OverflowError, RecursionError):
        pass  # refused below, like a cursor of another list
    raise InvalidError("cursor: not a cursor of this list.", field="cursor")


def _part(value: object, wanted: type[Part]) -> Part:
    if wanted is str:
        # What our ids and names are made of; anything else was never in a cursor of ours.
        if isinstance(value, str) and value.isascii() and value.isprintable():
            return value
    elif type(value) is int and abs(value) <= _MAX_INT:
        return value if wanted is int else from_unix_us(value)
    raise TypeError
