"""What can go wrong between this provider and its caller.

FakeProviderError
├── ClientGoneError     the caller closed the connection
└── RefusedCallError    the request can't be served; carries the error that is answered
"""

from fake_provider.domain.errors import ApiError


class FakeProviderError(Exception):
    """The fake provider can't go on."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or " ".join((type(self).__doc__ or "").split()))


class ClientGoneError(FakeProviderError):
    """The caller closed the connection."""


class RefusedCallError(FakeProviderError):
    """The request can't be served."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.message)
        self.error = error
