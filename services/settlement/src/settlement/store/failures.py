"""What an error of a driver means for what met it."""

from collections.abc import Iterator
from contextlib import contextmanager

import nats.errors
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from kit.postgres import CONNECTION_ERRORS
from settlement.errors import (
    RowRefusedError,
    StoreConflictError,
    StoreUnavailableError,
    StreamUnavailableError,
)

# serialization_failure and deadlock_detected
_CONFLICTS = frozenset({"40001", "40P01"})
# data exceptions, and integrity constraint violations
_REFUSAL_CLASSES = ("22", "23")


@contextmanager
def named_failures() -> Iterator[None]:
    """Turn the errors of Postgres into ours.

    Raises:
        StoreConflictError: nothing was written; doing it again is right.
        RowRefusedError: nothing was written, and doing it again would end the same way.
        StoreUnavailableError: no answer; a commit that was under way may have happened.

    """
    try:
        yield
    except DBAPIError as error:
        raise _named(error) from error
    except (SQLAlchemyError, *CONNECTION_ERRORS) as error:
        raise StoreUnavailableError(f"postgres: {type(error).__name__}") from error


@contextmanager
def named_stream_failures() -> Iterator[None]:
    """Turn the errors of JetStream into ours.

    Raises:
        StreamUnavailableError: no answer.

    """
    try:
        yield
    except (nats.errors.Error, TimeoutError) as error:
        raise StreamUnavailableError(f"jetstream: {type(error).__name__}") from error


def _named(error: DBAPIError) -> StoreConflictError | RowRefusedError | StoreUnavailableError:
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate in _CONFLICTS:
        return StoreConflictError()
    if isinstance(sqlstate, str) and sqlstate.startswith(_REFUSAL_CLASSES):
        # The driver's text may quote the row, so it stays a cause.
        return RowRefusedError(f"postgres refused with SQLSTATE {sqlstate}")
    return StoreUnavailableError(f"postgres: {type(error.orig).__name__}")
