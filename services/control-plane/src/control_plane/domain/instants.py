"""Instants as unix microseconds, exactly: Postgres keeps no more digits than that."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def unix_us(instant: datetime) -> int:
    """Return an instant as unix microseconds."""
    return (instant - _EPOCH) // timedelta(microseconds=1)


def from_unix_us(instant_us: int) -> datetime:
    """Return unix microseconds as an instant; OverflowError beyond the year 9999."""
    return _EPOCH + timedelta(microseconds=instant_us)
