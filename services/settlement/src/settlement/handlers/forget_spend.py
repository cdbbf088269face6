"""Forget spend: the rows of periods long over, which nothing reads but people."""

from kit import log
from settlement.store.spend_books import SpendBooks

_logger = log.get(__name__)


class ForgetSpend:
    """Removes rows. Replicas may do so side by side."""

    def __init__(self, books: SpendBooks, keep_days: int) -> None:
        """`keep_days` after a period's end its rows go; 0: never."""
        self._books = books
        self._keep_days = keep_days

    async def tick(self) -> None:
        """Remove what may go, some thousands at a time.

        Raises:
            StoreUnavailableError: no answer.

        """
        if not self._keep_days:
            return
        removed = 0
        while found := await self._books.forget(self._keep_days):
            removed += found
        if removed:
            _logger.info("old spend removed", rows=removed, keep_days=self._keep_days)
