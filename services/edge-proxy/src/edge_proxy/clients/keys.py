"""Whose key is this? Asked of tier-cache, remembered for a short time, forgotten when changed."""

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from prometheus_client import Counter

from contracts.cache import KEY_RESOLVE, KeyFacts, KeyResolveRequest
from contracts.control import KEY_CHANGED, KEY_REVOKED
from edge_proxy.errors import KeyLookupError
from kit import log
from kit.bus.errors import BusError
from kit.bus.requests import Requester
from kit.clock import Clock
from kit.keys import ParsedKey, matches
from kit.single_flight import SingleFlight

_US_PER_S = 1_000_000
_MS_PER_S = 1_000
_MAX_KEYS = 100_000
# Ids that nobody issued must not push out those in use, so they have a place of their own.
_MAX_UNKNOWN = 10_000
_UNKNOWN_FRESH_S = 3.0

_ValueT = TypeVar("_ValueT")
# How often everything was forgotten, and when the key last changed: answers of another are old.
_Era = tuple[int, int | None]

_logger = log.get(__name__)
_LOOKUPS = Counter(
    "quotagate_key_lookups_total", "Lookups of API keys by where the answer came from.", ["source"]
)
_FROM_MEMORY = _LOOKUPS.labels("memory")
_FROM_TIER_CACHE = _LOOKUPS.labels("tier_cache")
_FROM_STALE_MEMORY = _LOOKUPS.labels("stale_memory")
_FAILED = _LOOKUPS.labels("failed")


@dataclass(frozen=True, slots=True)
class KeyTimes:
    """How long answers are waited for and how long they are good."""

    lookup_timeout_ms: int
    fresh_s: float
    """Facts are used this long without asking again."""
    stale_s: float
    """And this long where nobody answers, so that keys in use outlive an outage of tier-cache."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    """What was found, and when, in microseconds of the monotonic clock."""

    facts: KeyFacts
    found_at_us: int


class KeyDirectory:
    """Facts about keys, at most 100,000 of them in memory."""

    def __init__(self, requester: Requester, clock: Clock, times: KeyTimes) -> None:
        self._requester = requester
        self._clock = clock
        self._times = times
        self._memory: OrderedDict[str, _Remembered] = OrderedDict()
        self._unknown: OrderedDict[str, int] = OrderedDict()
        # A revoked key stays dead as long as an answer given before could still be on its way.
        self._revoked: OrderedDict[str, int] = OrderedDict()
        # As long is remembered when a key changed: an answer to a question of before isn't kept.
        self._changed: OrderedDict[str, int] = OrderedDict()
        self._flights: SingleFlight[tuple[str, _Era], KeyFacts | None] = SingleFlight()
        # Nor are answers to questions of before the last time that everything was forgotten.
        self._forgotten = 0

    async def find(self, key_id: str) -> KeyFacts | None:
        """Return the facts of a key; None: there is none, or it is revoked or expired.

        Raises:
            KeyLookupError: nobody answers and nothing is remembered.

        """
        return self._valid(key_id, await self._find(key_id))

    def remembered(self, key_id: str) -> KeyFacts | None:
        """Return the facts of a key that was found good before, without asking anybody.

        As old as facts may be that are used while nobody answers.
        """
        known = self._memory.get(key_id)
        if known is None or self._age_s(known.found_at_us) > self._times.stale_s:
            return None
        return self._valid(key_id, known.facts)

    def _valid(self, key_id: str, facts: KeyFacts | None) -> KeyFacts | None:
        if facts is None or facts.revoked or key_id in self._revoked:
            return None
        # Expiry is the database's time, judged by this machine's clock.
        if facts.expires_at_us is not None and facts.expires_at_us <= self._clock.now_us():
            return None
        return facts

    def accepts(self, facts: KeyFacts, parsed: ParsedKey, pepper: str) -> bool:
        """Say whether a key was sent with its secret, or with the one before while both are good.

        The overlap ends at an instant of the database, judged by this machine's clock.
        """
        if matches(parsed, facts.secret_hash, pepper):
            return True
        old_hash, until_us = facts.old_secret_hash, facts.old_secret_until_us
        if old_hash is None or until_us is None or until_us <= self._clock.now_us():
            return False
        return matches(parsed, old_hash, pepper)

    async def follow_changes(self, client: Client) -> None:
        """Forget keys as they are revoked or changed; every edge hears of every such event."""

        async def hear_revoked(message: Msg) -> None:
            self.revoked(message.subject.rpartition(".")[2])

        async def hear_changed(message: Msg) -> None:
            self.changed(message.subject.rpartition(".")[2])

        await client.subscribe(KEY_REVOKED.wildcard, cb=hear_revoked)
        await client.subscribe(KEY_CHANGED.wildcard, cb=hear_changed)

    def revoked(self, key_id: str) -> None:
        """Accept a key no longer, whatever answer is still on its way."""
        self._memory.pop(key_id, None)
        self._note(self._revoked, key_id)
        _logger.info("key revoked", key_id=key_id)

    def changed(self, key_id: str) -> None:
        """Ask anew about a key, whatever answer is still on its way."""
        self._memory.pop(key_id, None)
        self._note(self._changed, key_id)
        _logger.info("key changed", key_id=key_id)

    def forget(self, key_id: str) -> None:
        """Ask anew about a key the next time it comes."""
        self._memory.pop(key_id, None)

    def forget_all(self) -> None:
        """Ask anew about every key: revocations may have been missed."""
        self._memory.clear()
        self._unknown.clear()
        self._forgotten += 1

    async def _find(self, key_id: str) -> KeyFacts | None:
        known = self._memory.get(key_id)
        if known is not None and self._age_s(known.found_at_us) <= self._times.fresh_s:
            _FROM_MEMORY.inc()
            return known.facts
        missed_at_us = self._unknown.get(key_id)
        if missed_at_us is not None and self._age_s(missed_at_us) <= _UNKNOWN_FRESH_S:
            _FROM_MEMORY.inc()
            return None
        era = self._era_of(key_id)
        try:
            facts = await self._flights.run((key_id, era), partial(self._ask, key_id, era))
        except BusError as error:
            if (
                era == self._era_of(key_id)
                and known is not None
                and self._age_s(known.found_at_us) <= self._times.stale_s
            ):
                _FROM_STALE_MEMORY.inc()
                return known.facts
            _FAILED.inc()
            _logger.warning("key lookup failed", error=type(error).__name__, key_id=key_id)
            raise KeyLookupError from error
        _FROM_TIER_CACHE.inc()
        # The key was changed since the question left, or it may have been.
        return facts if era == self._era_of(key_id) else await self._find(key_id)

    async def _ask(self, key_id: str, era: _Era) -> KeyFacts | None:
        timeout_s = self._times.lookup_timeout_ms / _MS_PER_S
        reply = await self._requester.ask(KEY_RESOLVE, KeyResolveRequest(key_id=key_id), timeout_s)
        if era != self._era_of(key_id):
            return None
        now_us = self._clock.monotonic_us()
        if reply.key is None:
            self._memory.pop(key_id, None)
            _put(self._unknown, key_id, now_us, _MAX_UNKNOWN)
        else:
            self._unknown.pop(key_id, None)
            _put(self._memory, key_id, _Remembered(reply.key, now_us), _MAX_KEYS)
        return reply.key

    def _era_of(self, key_id: str) -> _Era:
        return self._forgotten, self._changed.get(key_id)

    def _note(self, news: OrderedDict[str, int], key_id: str) -> None:
        """Note that a key had news now, and drop news of before any answer still on its way."""
        news[key_id] = self._clock.monotonic_us()
        news.move_to_end(key_id)
        longest_s = self._times.stale_s + self._times.lookup_timeout_ms / _MS_PER_S
        while self._age_s(next(iter(news.values()))) > longest_s:
            news.popitem(last=False)

    def _age_s(self, found_at_us: int) -> float:
        return (self._clock.monotonic_us() - found_at_us) / _US_PER_S


def _put(memory: OrderedDict[str, _ValueT], key_id: str, value: _ValueT, most: int) -> None:
    memory[key_id] = value
    memory.move_to_end(key_id)
    if len(memory) > most:
        memory.popitem(last=False)
