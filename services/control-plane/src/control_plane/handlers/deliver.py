"""Sends what is owed to the operator's webhook, after the commit that owes it.

Woken as the relay is, and by the clock. Each delivery is claimed for a little longer than an
attempt can take, so any number of control planes share the work, and one that is killed in the
middle is followed by another: a receiver may get an event twice, under the same id.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client import Counter, Gauge
from sqlalchemy.exc import SQLAlchemyError

from control_plane.clients.receiver import Receiver
from control_plane.domain.webhooks import Fate, Owed, body_of, fate, headers_of, pause_s
from control_plane.store import deliveries
from control_plane.store.database import Database, now
from kit import log
from kit.postgres import CONNECTION_ERRORS

_BATCH = 20
_POLL_S = 1.0
_LEASE_MARGIN_S = 10.0

_logger = log.get(__name__)
_ATTEMPTS = Counter(
    "quotagate_control_plane_webhook_attempts_total",
    "Attempts to tell the webhook of an event, by what became of the event.",
    ["fate"],
)
_OWED = Gauge("quotagate_control_plane_webhooks_owed", "Events that the webhook hasn't got yet.")
_OLDEST = Gauge(
    "quotagate_control_plane_webhooks_oldest_seconds", "Age of the oldest of those events."
)
_FAILURES = Counter(
    "quotagate_control_plane_webhook_failures_total", "Rounds of the sender that failed."
)


@dataclass(frozen=True, slots=True)
class Terms:
    """How the receiver is told: whose signatures, how long an attempt lasts, when it ends."""

    secrets: Sequence[bytes]
    timeout_s: float
    patience: timedelta


class Deliver:
    """Sends to one receiver; several may run on one database."""

    def __init__(self, database: Database, receiver: Receiver, terms: Terms) -> None:
        self._database = database
        self._receiver = receiver
        self._terms = terms
        self._woken = asyncio.Event()
        # Jitter only, no secret.
        self._rng = random.Random()  # noqa: S311

    def wake(self) -> None:
        """Look for what is owed now."""
        self._woken.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Send until told to stop; what is being sent then is finished."""
        while not stop.is_set():
            self._woken.clear()
            if not await self._try_round():
                await self._wait(stop)

    async def round(self) -> int:
        """Send what is due; return how many there were.

        Raises:
            SQLAlchemyError: what was claimed is due again when its lease has ended.

        """
        lease = timedelta(seconds=self._terms.timeout_s + _LEASE_MARGIN_S)
        async with self._database.changing() as session:
            claimed = await deliveries.claim(session, _BATCH, lease)
        await asyncio.gather(*(self._send(owed) for owed in claimed))
        return len(claimed)

    async def _send(self, owed: Owed) -> None:
        async with self._database.reading() as session:
            instant = await now(session)
        body = body_of(owed)
        headers = headers_of(owed.message_id, body, int(instant.timestamp()), self._terms.secrets)
        answer = await self._receiver.post(headers, body)
        became = fate(answer, instant - owed.created_at, self._terms.patience)
        pause = timedelta(seconds=pause_s(owed.attempt_no, self._rng.random()))
        async with self._database.changing() as session:
            await deliveries.note(session, owed, answer, became, pause)
        _ATTEMPTS.labels(became.value).inc()
        if became is not Fate.DELIVERED:
            _logger.warning(
                "webhook not delivered",
                message_id=owed.message_id,
                attempt_no=owed.attempt_no,
                status=answer.status,
                error=answer.error,
                fate=became.value,
            )

    async def _try_round(self) -> bool:
        try:
            await self._measure()
            return await self.round() > 0
        except (SQLAlchemyError, *CONNECTION_ERRORS) as error:
            _FAILURES.inc()
            _logger.warning("webhooks wait", error=type(error).__name__)
            return False

    async def _measure(self) -> None:
        async with self._database.reading() as session:
            depth = await deliveries.depth(session)
        _OWED.set(depth.deliveries)
        _OLDEST.set(depth.oldest_s)

    async def _wait(self, stop: asyncio.Event) -> None:
        waits = [asyncio.create_task(each.wait()) for each in (self._woken, stop)]
        await asyncio.wait(waits, timeout=_POLL_S, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()
