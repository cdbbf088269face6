"""Further limits on a real server: each in turn refuses and nothing moves; leases; days."""

import asyncio
from typing import Any

import pytest
from integration.redis_scripts.team import TIER, Team
from integration.redis_scripts.terms import CAPS, PLAIN, terms_of
from msgspec.structs import replace

from admission.domain.limits import Subject, limits_of
from admission.store.terms import Asking, Terms
from contracts.admission import LimitReason, Policy, Rates
from kit.calendar import days_around
from redis_scripts import (
    ANY_DAY,
    CountTerms,
    DayUsage,
    DayWindow,
    DebtCaps,
    DebtTerms,
    LeaseTerms,
    NotDoneError,
    PreflightReply,
    RedisScripts,
    Verdict,
)
from redis_scripts.keys import LEASES, day_counter, key_tat, model_tat

pytestmark = pytest.mark.usefixtures("far_from_midnight")

HOUR_US = 3_600_000_000
LIFE_US = 30_000_000
SUBJECT = Subject("key-1", "model-1")
FULL = Policy(
    tier_id=TIER,
    rpm=60_000_000,
    tpm=60_000,
    request_burst=1_000,
    input_tpm=60_000,
    output_tpm=60_000,
    max_concurrency=3,
    daily_requests=10,
    daily_tokens=1_000,
    key_rates=Rates(rpm=60_000_000, tpm=60_000),
    model_rates={"model-1": Rates(rpm=60_000_000, tpm=60_000)},
)


class Further:
    """A team of a tier that has every limit, its day counted, its leases taken by hand."""

    def __init__(self, scripts: RedisScripts, team: Team) -> None:
        self.scripts = scripts
        self.team = team
        self.calls = 0

    async def open(self, *, requests: int = 0, tokens: int = 0) -> None:
        await self.team.put()
        now_us = await self.team.now_us()
        start_us, end_us = days_around(now_us, "UTC").period_of(now_us)
        await self.scripts.fill_day(self.team.team_id, DayUsage(start_us, end_us, requests, tokens))

    async def ask(self, policy: Policy = FULL, estimate: int = 0) -> PreflightReply:
        self.calls += 1
        asking = Asking(self.team.team_id, SUBJECT, f"call-{self.calls}:1", estimate)
        terms = Terms(LIFE_US).judged(policy, asking, CAPS, await self.team.now_us())
        return await self.scripts.preflight(self.team.team_id, terms)

    async def now_us(self) -> int:
        return await self.team.now_us()

    async def owe(self, suffix: str, debt_us: int = HOUR_US) -> None:
        await self.team.redis.set(
            f"quota:{{{self.team.team_id}}}:{suffix}", await self.team.now_us() + debt_us
        )

    async def hold(self, *expires_in_us: int) -> None:
        now_us = await self.team.now_us()
        held = {f"held-{number}": now_us + each for number, each in enumerate(expires_in_us)}
        await self.team.redis.zadd(self.team.keys.leases, held)

    async def dump(self) -> dict[bytes, Any]:
        pattern = f"quota:{{{self.team.team_id}}}:*"
        keys = [key async for key in self.team.redis.scan_iter(pattern, count=10_000)]
        return {
            key: (await self.team.redis.dump(key), await self.team.redis.pexpiretime(key))
            for key in keys
        }


@pytest.fixture
def further(scripts: RedisScripts, team: Team) -> Further:
    return Further(scripts, team)


def reasons(reply: PreflightReply, policy: Policy = FULL) -> list[LimitReason]:
    limits = limits_of(policy, SUBJECT)
    return [limits[position].reason for position in reply.refusing]


REFUSALS = [
    pytest.param({"owes": "rate:input_tat"}, LimitReason.INPUT_TOKENS, id="input tokens"),
    pytest.param({"owes": "rate:output_tat"}, LimitReason.OUTPUT_TOKENS, id="output tokens"),
    pytest.param(
        {"owes": key_tat("key-1", "request").suffix}, LimitReason.KEY_REQUESTS, id="key requests"
    ),
    pytest.param(
        {"owes": key_tat("key-1", "token").suffix}, LimitReason.KEY_TOKENS, id="key tokens"
    ),
    pytest.param(
        {"owes": model_tat("model-1", "request").suffix},
        LimitReason.MODEL_REQUESTS,
        id="model requests",
    ),
    pytest.param(
        {"owes": model_tat("model-1", "token").suffix}, LimitReason.MODEL_TOKENS, id="model tokens"
    ),
    pytest.param({"holds": (1, 1, 1)}, LimitReason.CONCURRENCY, id="concurrency"),
    pytest.param(
        {"holds": (1, 1, 1, -1)}, LimitReason.CONCURRENCY, id="concurrency, and an expired lease"
    ),
    pytest.param(
        {"holds": (1, 1, 1, 1, 1)}, LimitReason.CONCURRENCY, id="more in flight than may be now"
    ),
    pytest.param({"requests": 10}, LimitReason.DAY_REQUESTS, id="the day's requests"),
    pytest.param({"tokens": 1_000}, LimitReason.DAY_TOKENS, id="the day's tokens"),
    pytest.param({"tokens": 999, "estimate": 2}, LimitReason.DAY_TOKENS, id="a huge prompt"),
]


@pytest.mark.parametrize(("state", "reason"), REFUSALS)
async def test_each_limit_refuses_and_moves_nothing(
    further: Further, state: dict[str, Any], reason: LimitReason
) -> None:
    await further.open(requests=state.get("requests", 0), tokens=state.get("tokens", 0))
    if "owes" in state:
        await further.owe(state["owes"])
    if "holds" in state:
        await further.hold(*(each * HOUR_US for each in state["holds"]))
    before = await further.dump()

    replies = [await further.ask(estimate=state.get("estimate", 0)) for _ in range(100)]

    assert {reply.verdict for reply in replies} == {Verdict.LIMITED}
    assert all(reasons(reply) == [reason] for reply in replies)
    assert await further.dump() == before


@pytest.mark.parametrize(("state", "reason"), REFUSALS)
async def test_in_shadow_mode_each_is_told_and_refuses_nobody(
    further: Further, state: dict[str, Any], reason: LimitReason
) -> None:
    await further.open(requests=state.get("requests", 0), tokens=state.get("tokens", 0))
    debt = f"quota:{{{further.team.team_id}}}:{state.get('owes', 'none')}"
    if "owes" in state:
        await further.owe(state["owes"])
    if "holds" in state:
        await further.hold(*(each * HOUR_US for each in state["holds"]))
    owed = await further.team.redis.get(debt)
    policy = replace(FULL, shadow=(reason,))

    replies = [await further.ask(policy, state.get("estimate", 0)) for _ in range(2)]

    assert {reply.verdict for reply in replies} == {Verdict.ADMITTED}
    assert all(reasons(reply) == [reason] for reply in replies)
    assert await further.team.redis.get(debt) == owed


@pytest.mark.parametrize("reason", [LimitReason.REQUESTS, LimitReason.TOKENS])
async def test_requests_and_tokens_have_a_shadow_mode_too(
    scripts: RedisScripts, team: Team, reason: LimitReason
) -> None:
    tat_us = await team.now_us() + HOUR_US
    name = "request_tat_us" if reason is LimitReason.REQUESTS else "token_tat_us"
    await team.put()
    await team.redis.set(getattr(team.keys, name.removesuffix("_us")), tat_us)
    shadow = (reason is LimitReason.REQUESTS, reason is LimitReason.TOKENS)
    reply = await scripts.preflight(team.team_id, replace(terms_of(PLAIN), shadow=shadow))
    assert (reply.verdict, len(reply.refusing)) == (Verdict.ADMITTED, 1)
    assert getattr(reply, name) == tat_us
    await team.put(request_tat_us=tat_us, token_tat_us=tat_us)
    reply = await scripts.preflight(team.team_id, replace(terms_of(PLAIN), shadow=shadow))
    assert (reply.verdict, reply.refusing) == (Verdict.LIMITED, (0, 1))


async def test_an_admission_takes_a_lease_counts_a_request_and_clears_what_expired(
    further: Further,
) -> None:
    await further.open(requests=4)
    await further.hold(HOUR_US, -HOUR_US)
    reply = await further.ask()
    assert reply.verdict is Verdict.ADMITTED
    leases = await further.team.redis.zrange(further.team.keys.leases, 0, -1, withscores=True)
    assert leases[0] == (b"call-1:1", reply.now_us + LIFE_US)
    assert [name for name, _ in leases] == [b"call-1:1", b"held-0"]
    values = {
        limit.reason: reading.value
        for limit, reading in zip(limits_of(FULL, SUBJECT)[2:], reply.further, strict=True)
    }
    assert values[LimitReason.DAY_REQUESTS] == 5
    assert values[LimitReason.DAY_TOKENS] == 0
    assert values[LimitReason.CONCURRENCY] == 2


async def test_further_keys_outlive_what_they_hold_and_no_idle_team(further: Further) -> None:
    """A debt lives an hour, or as long as it is; leases an hour beyond the newest."""
    await further.open()
    debt_us = 5 * HOUR_US + 900_000
    await further.owe(key_tat("key-1", "request").suffix, debt_us)
    policy = replace(FULL, shadow=(LimitReason.KEY_TOKENS,), key_rates=None)
    terms = Terms(LIFE_US).judged(
        policy, Asking(further.team.team_id, SUBJECT, "call:1", 0), CAPS, await further.now_us()
    )
    large = DebtTerms(key_tat("key-1", "request"), 1_000, 6 * HOUR_US, CAPS.request_us)
    terms = replace(terms, further=(*terms.further, large))
    reply = await further.scripts.preflight(further.team.team_id, terms)
    assert reply.verdict is Verdict.ADMITTED

    async def life_ms(key: str) -> int:
        expires_ms: int = await further.team.redis.pexpiretime(key)
        return expires_ms - reply.now_us // 1000

    hour_ms, jitter_ms = HOUR_US // 1000, 180_000
    idle = model_tat("model-1", "request").of(further.team.team_id)
    assert hour_ms <= await life_ms(idle) <= hour_ms + jitter_ms
    owing = key_tat("key-1", "request").of(further.team.team_id)
    assert 5 * hour_ms <= await life_ms(owing) <= 5 * hour_ms + 1_000
    lease_ms = LIFE_US // 1000
    leases_ms = await life_ms(further.team.keys.leases)
    assert hour_ms + lease_ms <= leases_ms <= hour_ms + jitter_ms + lease_ms


async def test_at_most_as_many_as_may_be_are_in_flight_ever(further: Further) -> None:
    await further.open()
    policy = replace(FULL, key_rates=None, model_rates={}, daily_requests=None, max_concurrency=5)
    replies = await asyncio.gather(*(further.ask(policy) for _ in range(50)))
    assert sum(reply.verdict is Verdict.ADMITTED for reply in replies) == 5


async def test_a_lease_is_renewed_released_and_expires(further: Further) -> None:
    await further.open()
    team_id, scripts = further.team.team_id, further.scripts
    await further.hold(HOUR_US)
    assert await scripts.renew_lease(team_id, "held-0", LIFE_US)
    assert not await scripts.renew_lease(team_id, "lost", LIFE_US)
    assert await further.team.redis.zcard(further.team.keys.leases) == 2
    assert await scripts.release_lease(team_id, "lost")
    assert not await scripts.release_lease(team_id, "lost")


async def test_a_day_is_counted_once_and_never_from_nothing(further: Further) -> None:
    await further.team.put()
    before = await further.dump()
    assert (await further.ask()).verdict is Verdict.COUNT_MISSING
    assert await further.dump() == before
    now_us = await further.team.now_us()
    start_us, end_us = days_around(now_us, "UTC").period_of(now_us)
    used = DayUsage(start_us, end_us, 3, 40)
    assert await further.scripts.fill_day(further.team.team_id, used) == 2
    assert await further.scripts.fill_day(further.team.team_id, replace(used, tokens=99)) == 0
    key = day_counter(start_us, end_us, "tokens").of(further.team.team_id)
    assert await further.team.redis.get(key) == b"40"
    assert await further.team.redis.pexpiretime(key) >= end_us // 1000 + 3_600_000


async def test_the_server_takes_the_day_that_its_own_clock_is_in(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put()
    now_us = await team.now_us()
    for start_us, end_us, requests in (
        (now_us - HOUR_US, now_us + HOUR_US, 1),
        (now_us + HOUR_US, now_us + 2 * HOUR_US, 2),
        (now_us - 2 * HOUR_US, now_us - HOUR_US, 3),
    ):
        await scripts.fill_day(team.team_id, DayUsage(start_us, end_us, requests, 0))
    windows = [
        DayWindow(now_us - HOUR_US, now_us + HOUR_US, now_us + 2 * HOUR_US),
        DayWindow(now_us - 2 * HOUR_US, now_us - HOUR_US, now_us + HOUR_US),
    ]
    for number, days in enumerate(windows):
        terms = replace(terms_of(PLAIN), interval_us=0, further=(counter(days),), days=days)
        reply = await scripts.preflight(team.team_id, terms)
        assert (reply.verdict, reply.further[0].value) == (Verdict.ADMITTED, 2 + number)
    far = DayWindow(now_us + HOUR_US, now_us + 2 * HOUR_US, now_us + 3 * HOUR_US)
    with pytest.raises(NotDoneError):
        await scripts.preflight(
            team.team_id, replace(terms_of(PLAIN), further=(counter(far),), days=far)
        )


def counter(days: DayWindow) -> CountTerms:
    places = (
        day_counter(days.start_us, days.boundary_us, "requests"),
        day_counter(days.boundary_us, days.end_us, "requests"),
    )
    return CountTerms(places, 10, 1, 1)


async def test_a_further_debt_nobody_can_explain_is_brought_back(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put()
    key = key_tat("key-1", "token")
    await team.redis.set(key.of(team.team_id), await team.now_us() + 50 * HOUR_US)
    debt = DebtTerms(key, 0, 0, 5_000_000)
    reply = await scripts.preflight(team.team_id, replace(terms_of(PLAIN), further=(debt,)))
    assert (reply.verdict, reply.further[0].capped) == (Verdict.LIMITED, True)
    capped = await scripts.cap_debts(team.team_id, DebtCaps(HOUR_US, HOUR_US), (debt,))
    assert await team.tat_us(key.of(team.team_id)) == capped.now_us + 5_000_000


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(LeaseTerms(LEASES, 1, "call", LIFE_US), id="leases"),
        pytest.param(DebtTerms(LEASES, 1, 0, HOUR_US), id="a debt"),
        pytest.param(CountTerms((LEASES, LEASES), 1, 1, 1), id="a count"),
    ],
)
async def test_a_further_key_of_another_kind_is_an_error_and_no_admission(
    scripts: RedisScripts, team: Team, broken: LeaseTerms | DebtTerms | CountTerms
) -> None:
    await team.put()
    await team.redis.rpush(team.keys.leases, "a list")
    before = await team.snapshot()
    terms = replace(terms_of(PLAIN), further=(broken,), days=ANY_DAY)
    with pytest.raises(NotDoneError):
        await scripts.preflight(team.team_id, terms)
    assert await team.snapshot() == before
