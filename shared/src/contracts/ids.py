"""The alphabets of ids that become part of a NATS subject or a Redis key."""

from typing import Annotated

import msgspec

ID_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"

# A brace in a team id would move its Redis keys to another team's slot; a dot would split a
# subject.
TeamId = Annotated[str, msgspec.Meta(pattern=ID_PATTERN)]
TierId = Annotated[str, msgspec.Meta(pattern=ID_PATTERN)]
KeyId = Annotated[str, msgspec.Meta(pattern=ID_PATTERN)]

AttemptNo = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
"""Attempts of an inference count from 1."""
