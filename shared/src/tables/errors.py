"""What can go wrong with the account's functions.

TablesError
├── UnknownAccountError
└── AmountError
"""


class TablesError(Exception):
    """The database refused."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])


class UnknownAccountError(TablesError):
    """There is no account of that team."""


class AmountError(TablesError):
    """An amount must be a finite number of USD above zero; the direction says which way."""
