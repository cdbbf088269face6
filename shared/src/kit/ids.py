"""Ids that sort by time."""

import uuid_utils


def new_id() -> str:
    """Return a UUIDv7 in its canonical text form."""
    return str(uuid_utils.uuid7())
