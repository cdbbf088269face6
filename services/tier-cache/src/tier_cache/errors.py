"""The root of what tier-cache raises.

TierCacheError
├── DatabaseUnavailableError  store/: Postgres gave no answer
├── StreamUnavailableError    store/: JetStream gave no answer
├── ImpossibleLimitsError     store/: what is stored of a key can't be its limits
├── ContendedError            handlers/: a team changed each time it was read
└── UnreadableChangeError     domain/: an event that no retry can make sense of
"""


class TierCacheError(Exception):
    """tier-cache can't answer."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or " ".join((type(self).__doc__ or "").split()))


class DatabaseUnavailableError(TierCacheError):
    """Postgres gave no answer."""


class StreamUnavailableError(TierCacheError):
    """JetStream gave no answer."""


class ImpossibleLimitsError(TierCacheError):
    """What is stored can't be anybody's limits; it was written past the control plane."""


class ContendedError(TierCacheError):
    """The team changed each time it was read."""


class UnreadableChangeError(TierCacheError):
    """The event can't be understood, now or later."""
