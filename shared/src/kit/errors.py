"""The root of what the plumbing raises.

KitError
├── SettingsError           settings.py
├── NotReadyError           lifecycle: something this service needs doesn't answer yet
│   └── UnsafeServerError   a server is configured so that a promise would break
├── BusError                bus/
│   ├── NotDoneError        certainly not carried out
│   │   ├── DisconnectedError
│   │   ├── NoResponderError
│   │   ├── StreamRefusedError
│   │   ├── ConflictError   somebody else has written it meanwhile
│   │   └── RefusedError    an error reply whose code says that nothing moved
│   └── OutcomeUnknownError carried out or not, nobody can tell
│       ├── NoReplyError
│       └── FailedError     an error reply whose code says that it failed midway
├── InexactAmountError      money.py
└── CalendarError           calendar.py: a moment is in no day that could be told
    ├── UnknownTimeZoneError
    └── BeyondCalendarError
"""


class KitError(Exception):
    """Something in the plumbing failed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or " ".join((type(self).__doc__ or "").split()))


class NotReadyError(KitError):
    """Something this service needs doesn't answer yet."""


class UnsafeServerError(NotReadyError):
    """A server is configured so that a promise of ours would break."""
