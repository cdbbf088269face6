"""Days in UTC, as reports count them."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta


@dataclass(frozen=True, slots=True)
class Days:
    """From the first day to the last, both included."""

    first: date
    last: date

    @property
    def since(self) -> datetime:
        """The instant at which the first begins."""
        return datetime.combine(self.first, time(), UTC)

    @property
    def until(self) -> datetime:
        """The instant at which the last is over."""
        return datetime.combine(self.last + timedelta(days=1), time(), UTC)
