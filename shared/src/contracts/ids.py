"""The alphabets of ids that become part of a NATS subject or a Redis key."""

from typing import Annotated

import msgspec

ID_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"
# msgspec searches with Python's `re`, whose `$` also matches before a last line feed.
_WHOLE = ID_PATTERN + r"(?!\n)"

# A brace in a team id would move its Redis keys to another team's slot; a dot would split a
# subject.
TeamId = Annotated[str, msgspec.Meta(pattern=_WHOLE)]
TierId = Annotated[str, msgspec.Meta(pattern=_WHOLE)]
KeyId = Annotated[str, msgspec.Meta(pattern=_WHOLE)]

ADDRESS_PATTERN = r"^[0-9a-f.:]{2,45}(/[0-9]{1,3})?$"
Address = Annotated[str, msgspec.Meta(pattern=ADDRESS_PATTERN + r"(?!\n)")]
"""A client's IP address in its one way of writing, or the IPv6 network that stands for it."""

AttemptNo = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
"""Attempts of an inference count from 1."""
