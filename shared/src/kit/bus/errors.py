"""What the bus raises; the tree is drawn in :mod:`kit.errors`."""

from contracts.errors import SENTENCES, ErrorCode
from kit.errors import KitError


class BusError(KitError):
    """A message did not get its answer."""


class NotDoneError(BusError):
    """The request was certainly not carried out."""


class DisconnectedError(NotDoneError):
    """There is no connection to NATS; nothing was sent."""


class NoResponderError(NotDoneError):
    """Nobody serves this subject, or the stream doesn't exist."""


class StreamRefusedError(NotDoneError):
    """The stream refused the message, for example because it is full."""


class ConflictError(NotDoneError):
    """Somebody else has written it meanwhile."""


class RefusedError(NotDoneError):
    """The service refused the request before anything moved."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(SENTENCES[code])
        self.code = code


class OutcomeUnknownError(BusError):
    """The request may have been carried out or not."""


class NoReplyError(OutcomeUnknownError):
    """No reply arrived in time."""


class FailedError(OutcomeUnknownError):
    """The service failed while it carried the request out."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(SENTENCES[code])
        self.code = code


_MIDWAY = frozenset({ErrorCode.STORE_UNAVAILABLE, ErrorCode.INTERNAL})


def from_code(text: str) -> BusError:
    """Return the error a reply's code stands for; an unknown code is an unknown outcome."""
    try:
        code = ErrorCode(text)
    except ValueError:
        return FailedError(ErrorCode.INTERNAL)
    return FailedError(code) if code in _MIDWAY else RefusedError(code)
