"""What is wrong with how a server or a client is configured, and what to do about it.

Each rule stands once, beside the check of its store (kit.redis, kit.postgres, kit.bus.streams,
tables.guards): a service isn't ready with a dangerous flaw, and `quotagate doctor` shows all.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kit.errors import UnsafeServerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """One thing that is configured wrongly. All three texts are for people, and hold no secret."""

    what: str
    why: str
    """The promise it breaks."""
    mend: str
    """What to do, or what to type."""
    dangerous: bool = True
    """Whether a promise would break; False: it may, or something is only worse than it could be."""


def refuse(flaws: Iterable[Flaw]) -> None:
    """See that nothing dangerous is among the flaws.

    Raises:
        UnsafeServerError: the first that is.

    """
    for flaw in flaws:
        if flaw.dangerous:
            raise UnsafeServerError(flaw.what)
