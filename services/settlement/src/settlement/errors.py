"""The root of what settlement raises.

SettlementError
├── StoreUnavailableError   store/: Postgres gave no answer; asking again finds out what it did
├── StoreConflictError      store/: the transaction lost against another one and changed nothing
├── RowRefusedError         store/: Postgres refused what it was given; nothing was written
├── CacheUnavailableError   store/: Redis gave no answer
└── StreamUnavailableError  store/: JetStream gave no answer
"""


class SettlementError(Exception):
    """Settlement can't go on with this piece of work."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or " ".join((type(self).__doc__ or "").split()))


class StoreUnavailableError(SettlementError):
    """Postgres gave no answer."""


class StoreConflictError(SettlementError):
    """The transaction lost against another one and changed nothing."""


class RowRefusedError(SettlementError):
    """Postgres refused what it was given; nothing was written."""


class CacheUnavailableError(SettlementError):
    """Redis gave no answer."""


class StreamUnavailableError(SettlementError):
    """JetStream gave no answer."""
