"""The root of what this package raises.

RedisScriptsError
├── InvalidTeamIdError    keys.py: nothing was sent
├── InvalidAddressError   keys.py: nothing was sent
├── OutOfRangeError       scripts.py: nothing was sent
├── NotDoneError          certainly not carried out: nothing was written
└── OutcomeUnknownError   carried out or not, nobody can tell
"""


class RedisScriptsError(Exception):
    """A script call failed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or " ".join((type(self).__doc__ or "").split()))


class InvalidTeamIdError(RedisScriptsError, ValueError):
    """A team id may hold 1 to 64 of A-Z, a-z, 0-9, _ and -."""


class InvalidAddressError(RedisScriptsError, ValueError):
    """A client's address is an IP address or network, written in lower case."""


class OutOfRangeError(RedisScriptsError, ValueError):
    """A number is beyond what Redis or a script can hold exactly."""


class NotDoneError(RedisScriptsError):
    """The server refused the call; nothing was written."""


class OutcomeUnknownError(RedisScriptsError):
    """No answer came from the server; the script may have run."""
