"""What is answered when a store doesn't answer: an error, never a guess."""

from contracts.errors import ErrorCode
from kit import log
from kit.bus.serving import ReplyError
from redis_scripts import InvalidTeamIdError

_logger = log.get(__name__)


def unavailable(what: str, error: Exception) -> ReplyError:
    """Log why a lookup or a fill failed, and return the error reply."""
    if isinstance(error, InvalidTeamIdError):
        return ReplyError(ErrorCode.INVALID_MESSAGE)
    _logger.warning("not answered", what=what, error=type(error).__name__, detail=str(error))
    return ReplyError(ErrorCode.STORE_UNAVAILABLE)
