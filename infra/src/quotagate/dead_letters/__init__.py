"""Dead letters: messages that could not be handled, to look at, to replay, to drop."""

from quotagate.dead_letters.letters import (
    GivenUp,
    Letter,
    NoSuchLetterError,
    given_up,
    letter,
    letters,
)
from quotagate.dead_letters.replaying import Fate, Replay, drop, replay

__all__ = [
    "Fate",
    "GivenUp",
    "Letter",
    "NoSuchLetterError",
    "Replay",
    "drop",
    "given_up",
    "letter",
    "letters",
    "replay",
]
