"""Facts about keys: an answer that was on its way when it became old is not used."""

import asyncio
from typing import Any

import pytest

from contracts.admission import KeyLimits
from contracts.cache import KeyFacts, KeyResolveReply
from edge_proxy.clients.keys import KeyDirectory, KeyTimes
from edge_proxy.errors import KeyLookupError
from kit.bus.errors import NoReplyError
from kit.clock import SystemClock
from kit.keys import new_secret, parse

FACTS = KeyFacts(key_id="k", team_id="t", secret_hash="")
REVOKED = KeyFacts(key_id="k", team_id="t", secret_hash="", revoked=True)
CHANGED = KeyFacts(key_id="k", team_id="t", secret_hash="", limits=KeyLimits(rpm=1))
TIMES = KeyTimes(lookup_timeout_ms=1_000, fresh_s=30, stale_s=300)

PEPPER = "pepper"

Said = KeyFacts | Exception | None


class StoppedClock:
    """It is one microsecond past the epoch, for ever."""

    def now_us(self) -> int:
        """Return unix microseconds."""
        return 1

    def monotonic_us(self) -> int:
        """Return microseconds since some moment."""
        return 1


class SlowTierCache:
    """Answers each question when told to, with what was true when the question came."""

    def __init__(self) -> None:
        self.truth: Said = FACTS
        self.asked = asyncio.Queue[asyncio.Event]()

    async def ask(self, _contract: Any, _request: Any, _timeout_s: float) -> KeyResolveReply:
        """Stand in for a Requester."""
        told, release = self.truth, asyncio.Event()
        self.asked.put_nowait(release)
        await release.wait()
        if isinstance(told, Exception):
            raise told
        return KeyResolveReply(key=told)


def directory(tier_cache: SlowTierCache) -> KeyDirectory:
    requester: Any = tier_cache
    return KeyDirectory(requester, SystemClock(), TIMES)


async def test_a_revocation_overtakes_an_answer() -> None:
    tier_cache = SlowTierCache()
    keys = directory(tier_cache)
    finding = asyncio.create_task(keys.find("k"))
    answer = await tier_cache.asked.get()
    keys.revoked("k")
    answer.set()
    assert await finding is None
    assert await keys.find("k") is None


async def test_what_was_asked_before_everything_was_forgotten_is_asked_again() -> None:
    tier_cache = SlowTierCache()
    keys = directory(tier_cache)
    finding = asyncio.create_task(keys.find("k"))
    old_answer = await tier_cache.asked.get()
    # The key is revoked while the bus is gone: the event is never heard.
    tier_cache.truth = REVOKED
    keys.forget_all()
    joining = asyncio.create_task(keys.find("k"))
    new_answer = await tier_cache.asked.get()
    new_answer.set()
    assert await joining is None
    old_answer.set()
    assert await finding is None
    # Nor has the old answer been remembered.
    assert await keys.find("k") is None
    assert tier_cache.asked.empty()


async def test_a_change_overtakes_an_answer() -> None:
    tier_cache = SlowTierCache()
    keys = directory(tier_cache)
    finding = asyncio.create_task(keys.find("k"))
    old_answer = await tier_cache.asked.get()
    tier_cache.truth = CHANGED
    keys.changed("k")
    joining = asyncio.create_task(keys.find("k"))
    new_answer = await tier_cache.asked.get()
    old_answer.set()
    new_answer.set()
    assert await joining == CHANGED
    assert await finding == CHANGED
    # Nor has the old answer been remembered.
    assert await keys.find("k") == CHANGED
    assert tier_cache.asked.empty()


async def test_a_change_of_one_key_is_no_news_of_another() -> None:
    tier_cache = SlowTierCache()
    keys = directory(tier_cache)
    finding = asyncio.create_task(keys.find("k"))
    (await tier_cache.asked.get()).set()
    assert await finding == FACTS
    keys.changed("another")
    assert await keys.find("k") == FACTS
    assert tier_cache.asked.empty()


async def test_after_a_change_what_was_known_is_no_help_when_nobody_answers() -> None:
    tier_cache = SlowTierCache()
    keys = directory(tier_cache)
    finding = asyncio.create_task(keys.find("k"))
    (await tier_cache.asked.get()).set()
    assert await finding == FACTS
    tier_cache.truth = NoReplyError()
    keys.changed("k")
    again = asyncio.create_task(keys.find("k"))
    (await tier_cache.asked.get()).set()
    with pytest.raises(KeyLookupError):
        await again


async def test_a_key_made_meanwhile_is_found() -> None:
    tier_cache = SlowTierCache()
    tier_cache.truth = None
    keys = directory(tier_cache)
    finding = asyncio.create_task(keys.find("k"))
    old_answer = await tier_cache.asked.get()
    tier_cache.truth = FACTS
    keys.forget_all()
    old_answer.set()
    (await tier_cache.asked.get()).set()
    assert await finding == FACTS


async def test_what_was_forgotten_is_no_help_when_nobody_answers() -> None:
    tier_cache = SlowTierCache()
    keys = KeyDirectory(
        tier_cache,  # type: ignore[arg-type] # only its question is needed
        SystemClock(),
        KeyTimes(lookup_timeout_ms=1_000, fresh_s=0, stale_s=300),
    )
    first = asyncio.create_task(keys.find("k"))
    (await tier_cache.asked.get()).set()
    assert await first == FACTS
    tier_cache.truth = NoReplyError()
    stale = asyncio.create_task(keys.find("k"))
    (await tier_cache.asked.get()).set()
    assert await stale == FACTS
    caught_up = asyncio.create_task(keys.find("k"))
    answer = await tier_cache.asked.get()
    keys.forget_all()
    answer.set()
    with pytest.raises(KeyLookupError):
        await caught_up


@pytest.mark.parametrize(
    ("sent", "until_us", "accepted"),
    [
        pytest.param("new", 2, True, id="the new secret"),
        pytest.param("old", 2, True, id="the old one within the overlap"),
        pytest.param("old", 1, False, id="the old one when the overlap ends"),
        pytest.param("old", None, False, id="the old one without an end"),
        pytest.param("other", 2, False, id="a secret of nobody"),
    ],
)
def test_after_a_rotation_two_secrets_are_good_for_a_while(
    sent: str, until_us: int | None, *, accepted: bool
) -> None:
    new, old, other = (new_secret("k" * 16, PEPPER) for _ in range(3))
    facts = KeyFacts(
        key_id=new.key_id,
        team_id="t",
        secret_hash=new.secret_hash,
        old_secret_hash=old.secret_hash,
        old_secret_until_us=until_us,
    )
    requester: Any = None
    keys = KeyDirectory(requester, StoppedClock(), TIMES)
    parsed = parse({"new": new, "old": old, "other": other}[sent].text)
    assert parsed is not None
    assert keys.accepts(facts, parsed, PEPPER) is accepted
