"""Which error code answers a request that can't be decided. Never a decision, never fail-open."""

from admission.errors import AdmissionError, ImpossibleTierError, UnknownTeamError
from contracts.errors import ErrorCode
from kit.bus.serving import ReplyError
from kit.calendar import CalendarError
from kit.money import InexactAmountError
from redis_scripts import InvalidAddressError, InvalidTeamIdError, OutOfRangeError

# Numbers and names that nothing could be done with; nothing moved.
_IMPOSSIBLE = (InvalidAddressError, InvalidTeamIdError, OutOfRangeError, InexactAmountError)

FAILURES = (AdmissionError, CalendarError, *_IMPOSSIBLE)
"""What keeps a request from being decided."""


def reply_error(error: Exception) -> ReplyError:
    """Return the error reply for one of FAILURES."""
    if isinstance(error, UnknownTeamError):
        return ReplyError(ErrorCode.UNKNOWN_TEAM)
    if isinstance(error, ImpossibleTierError):
        return ReplyError(ErrorCode.IMPOSSIBLE_LIMITS)
    if isinstance(error, _IMPOSSIBLE):
        return ReplyError(ErrorCode.INVALID_MESSAGE)
    return ReplyError(ErrorCode.STORE_UNAVAILABLE)
