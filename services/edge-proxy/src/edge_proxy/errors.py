"""The root of what the edge raises.

EdgeError
├── RoutesError               domain/routes.py: the routes file is wrong; the process doesn't start
├── PoliciesError             domain/policies.py: the policies file is wrong; it doesn't start
├── DataDirectoryError        store/: records can't be kept in the data directory
├── KeyLookupError            clients/keys.py: nobody can say whose key this is
├── AnswerTooLargeError       handlers/: a provider's answer is larger than we hold in memory
└── ProviderError             clients/provider.py
    ├── UnreachableError      nothing was sent
    ├── ProviderTimeoutError  sent; no answer in time
    └── BrokenAnswerError     sent; the answer ended early or was no HTTP
"""


class EdgeError(Exception):
    """The edge can't go on with what it was doing."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or " ".join((type(self).__doc__ or "").split()))


class RoutesError(EdgeError):
    """The routes file is wrong."""


class PoliciesError(EdgeError):
    """The policies file is wrong."""


class DataDirectoryError(EdgeError):
    """Records can't be kept in the data directory."""


class KeyLookupError(EdgeError):
    """Nobody can say at the moment whose key this is."""


class AnswerTooLargeError(EdgeError):
    """The provider's answer is larger than the gateway holds in memory."""


class ProviderError(EdgeError):
    """The provider gave no usable answer."""


class UnreachableError(ProviderError):
    """No connection to the provider; nothing was sent."""


class ProviderTimeoutError(ProviderError):
    """The provider didn't answer in time."""


class BrokenAnswerError(ProviderError):
    """The provider's answer ended early or was no HTTP."""
