"""Change events of the control plane: evict tier mappings, move cached balances.

Each is applied at least once, by whichever replica fetched it, and in any order across teams; the
versions in Redis make repeats and late-comers harmless. An event is acknowledged after its write.
"""

import asyncio
import contextlib
from base64 import b64encode
from collections.abc import Sequence

from nats.aio.msg import Msg
from prometheus_client import Counter

from contracts.control import ACCOUNT_ADJUSTED, CONTROL_EVENTS, TIER_CHANGED
from contracts.dead import DEAD_LETTERED, DeadLetter
from kit import log
from kit.bus.consuming import Durable, Puller
from kit.bus.errors import BusError, DisconnectedError
from kit.bus.publishing import Publisher
from kit.clock import Clock
from kit.crashpoint import crash_at
from kit.errors import NotReadyError
from redis_scripts import InvalidTeamIdError, OutOfRangeError, RedisScripts, RedisScriptsError
from tier_cache.domain.changes import BalanceMove, Change, TierEviction, read
from tier_cache.errors import UnreadableChangeError

_CONSUMER = "tier-cache"
DURABLE = Durable(
    stream=CONTROL_EVENTS.name,
    name=_CONSUMER,
    subjects=(TIER_CHANGED.wildcard, ACCOUNT_ADJUSTED.wildcard),
    ack_wait_s=5.0,
    # At one a second these last longer than any outage of Redis that nobody attends to.
    max_deliver=100_000,
    max_ack_pending=1_000,
)

_BATCH = 100
# A fetch returns as soon as something arrives; this bounds how long a stop waits for it.
_FETCH_WAIT_S = 1.0
_RETRY_S = 1.0
_DEAD_LETTER_TIMEOUT_S = 2.0

_logger = log.get(__name__)
_CHANGES = Counter(
    "quotagate_tier_cache_changes_total",
    "Change events, by kind and what became of them in Redis.",
    ["kind", "result"],
)


class Changes:
    """Fetches change events and applies them to Redis."""

    def __init__(
        self, puller: Puller, publisher: Publisher, scripts: RedisScripts, clock: Clock
    ) -> None:
        self._puller = puller
        self._publisher = publisher
        self._scripts = scripts
        self._clock = clock

    async def run(self, stop: asyncio.Event) -> None:
        """Apply events as they come, until told to stop; then those already fetched."""
        while not stop.is_set():
            try:
                messages = await self._puller.fetch(_BATCH, _FETCH_WAIT_S)
            except DisconnectedError as error:
                _logger.warning("no change events for now", detail=str(error))
                await self._reopen(stop)
                continue
            await asyncio.gather(*(self._apply_in_order(group) for group in _by_team(messages)))

    async def _reopen(self, stop: asyncio.Event) -> None:
        """Wait a moment, and bind to the consumer again: it may be another by now."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_RETRY_S):
                await stop.wait()
        if stop.is_set():
            return
        try:
            await self._puller.open()
        except NotReadyError as error:
            _logger.warning("change events not ready", detail=str(error))

    async def _apply_in_order(self, messages: Sequence[Msg]) -> None:
        """Apply one team's events; once one has to wait, those after it wait as well."""
        waiting = False
        for message in messages:
            waiting = waiting or not await self._apply(message)
            try:
                if waiting:
                    await self._puller.give_back(message, _RETRY_S)
                else:
                    crash_at("tier_cache.changed")
                    await self._puller.ack(message)
            except BusError as error:
                # It comes again, which changes nothing.
                _logger.warning("change event not acknowledged", detail=str(error))

    async def _apply(self, message: Msg) -> bool:
        """Return whether the event is done with: applied, or kept as a dead letter."""
        try:
            change = read(message.subject, message.data)
        except UnreadableChangeError as error:
            return await self._bury(message, str(error))
        kind = "tier" if isinstance(change, TierEviction) else "balance"
        try:
            result = await self._write(change)
        except (InvalidTeamIdError, OutOfRangeError) as error:
            return await self._bury(message, str(error))
        except RedisScriptsError as error:
            _CHANGES.labels(kind, "failed").inc()
            _logger.warning(
                "change event waits", team_id=change.team_id, kind=kind, detail=str(error)
            )
            if message.metadata.num_delivered >= DURABLE.max_deliver:
                return await self._bury(message, f"given up: {error}")
            return False
        _CHANGES.labels(kind, result).inc()
        return True

    async def _write(self, change: Change) -> str:
        match change:
            case TierEviction(team_id, version):
                return (await self._scripts.evict_tier(team_id, version)).value
            case BalanceMove(team_id, delta_nano_usd, version):
                moved = await self._scripts.adjust_balance(team_id, delta_nano_usd, version)
                return moved.value

    async def _bury(self, message: Msg, reason: str) -> bool:
        """Keep an event as a dead letter; return whether it is kept."""
        sequence = message.metadata.sequence.stream
        letter = DeadLetter(
            stream=DURABLE.stream,
            stream_sequence=sequence,
            subject=message.subject,
            consumer=_CONSUMER,
            reason=reason,
            payload_base64=b64encode(message.data).decode(),
            failed_at_us=self._clock.now_us(),
        )
        try:
            await self._publisher.publish(
                DEAD_LETTERED,
                _CONSUMER,
                letter,
                message_id=letter.message_id,
                timeout_s=_DEAD_LETTER_TIMEOUT_S,
            )
        except BusError as error:
            _logger.warning("dead letter not kept yet", sequence=sequence, detail=str(error))
            return False
        _CHANGES.labels("unreadable", "dead_letter").inc()
        _logger.error("change event given up", sequence=sequence, reason=reason)
        return True


def _by_team(messages: Sequence[Msg]) -> list[list[Msg]]:
    """Return the messages of each team, in their order; the team is the subject's last token."""
    groups: dict[str, list[Msg]] = {}
    for message in messages:
        groups.setdefault(message.subject.rpartition(".")[2], []).append(message)
    return list(groups.values())
