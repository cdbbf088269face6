"""The root of what admission raises.

AdmissionError
├── StoreUnavailableError      store/: Redis gave no answer; what it did may be unknown
├── TierCacheUnavailableError  clients/: tier-cache didn't do what it was asked
├── UnknownTeamError           clients/: the database has no such team
└── ImpossibleTierError        handlers/: what is stored of the team's tier can't be a policy
"""


class AdmissionError(Exception):
    """Admission can't answer."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or " ".join((type(self).__doc__ or "").split()))


class StoreUnavailableError(AdmissionError):
    """Redis gave no answer; what it did may be unknown."""


class TierCacheUnavailableError(AdmissionError):
    """tier-cache didn't do what it was asked."""


class UnknownTeamError(AdmissionError):
    """The database has no such team."""


class ImpossibleTierError(AdmissionError):
    """What is stored of the team's tier can't be a policy."""
