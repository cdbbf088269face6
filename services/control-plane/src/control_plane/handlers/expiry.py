"""Forgets the answers to old idempotency keys, once an hour."""

import asyncio
from datetime import timedelta

from sqlalchemy.exc import SQLAlchemyError

from control_plane.store import idempotency
from control_plane.store.database import Database
from kit import log
from kit.postgres import CONNECTION_ERRORS

_INTERVAL_S = 3_600.0
_logger = log.get(__name__)


class Expiry:
    """Keeps the table of idempotency keys from growing for ever."""

    def __init__(self, database: Database, retention: timedelta) -> None:
        self._database = database
        self._retention = retention

    async def run(self, stop: asyncio.Event) -> None:
        """Forget at once and then every hour, until told to stop."""
        while not stop.is_set():
            try:
                async with self._database.changing() as session:
                    await idempotency.forget(session, self._retention)
            except (SQLAlchemyError, *CONNECTION_ERRORS) as error:
                _logger.warning("idempotency keys not expired", error=type(error).__name__)
            try:
                async with asyncio.timeout(_INTERVAL_S):
                    await stop.wait()
            except TimeoutError:
                pass  # the ordinary case: nobody stopped us
