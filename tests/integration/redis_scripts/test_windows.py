"""Sliding windows on a real server: exact to the microsecond, bounded, and gone by themselves."""

import asyncio
import uuid

import pytest
from integration.redis_scripts.team import Team
from integration.redis_scripts.terms import PLAIN, charge_of, terms_of
from integration.redis_scripts.window_world import Logs
from msgspec.structs import replace
from redis.asyncio import Redis

from admission.store.terms import window_terms
from contracts.windows import Window, WindowUse
from redis_scripts import (
    InvalidAddressError,
    NotDoneError,
    OutOfRangeError,
    RedisScripts,
    Verdict,
    WindowsReply,
    WindowTerms,
)
from redis_scripts.keys import Owner, address_owner, team_owner, window_log

MINUTE_US = 60_000_000
DAY_US = 86_400_000_000
THREE = Window(group="Chat", label="Minute", limit=3, length_us=MINUTE_US)
FIVE = Window(group="Chat", label="Day", limit=5, length_us=DAY_US)


@pytest.fixture
def owner() -> Owner:
    return address_owner(f"2001:db8::{uuid.uuid4().int % 65_536:x}:{uuid.uuid4().int % 65_536:x}")


@pytest.fixture
def logs(owner: Owner, operator: Redis) -> Logs:
    return Logs(owner, (THREE, FIVE), "", operator)


async def ask(scripts: RedisScripts, owner: Owner, *windows: Window) -> WindowsReply:
    return await scripts.judge_windows(owner, window_terms(windows, uuid.uuid4().hex))


async def test_it_refuses_until_its_oldest_request_leaves_and_says_when(
    scripts: RedisScripts, owner: Owner, logs: Logs
) -> None:
    first = await ask(scripts, owner, THREE)
    _, last = [await ask(scripts, owner, THREE) for _ in range(2)]
    assert last.uses == (WindowUse(used=3),)
    refused = await ask(scripts, owner, THREE)
    assert not refused.admitted
    assert refused.uses == (
        WindowUse(
            used=3, admits_at_us=first.now_us + MINUTE_US, empty_at_us=last.now_us + MINUTE_US
        ),
    )

    # The oldest alone is a minute old, to the microsecond or a little more: one may come.
    await logs.age(MINUTE_US - (refused.now_us - first.now_us))
    assert (await ask(scripts, owner, THREE)).admitted


async def test_no_boundary_lets_a_burst_through(
    scripts: RedisScripts, owner: Owner, logs: Logs
) -> None:
    async def admitted() -> int:
        return sum([(await ask(scripts, owner, THREE)).admitted for _ in range(6)])

    assert await admitted() == 3
    # Wherever minutes may begin: half of one later none of the three has left.
    await logs.age(30_000_000)
    assert await admitted() == 0
    await logs.age(30_000_000)
    assert await admitted() == 3


async def test_a_refusal_by_one_window_enters_none(
    scripts: RedisScripts, owner: Owner, logs: Logs
) -> None:
    for _ in range(3):
        assert (await ask(scripts, owner, THREE, FIVE)).admitted
    before = await logs.dump()
    for _ in range(20):
        reply = await ask(scripts, owner, THREE, FIVE)
        assert not reply.admitted
        assert [use.used for use in reply.uses] == [3, 3]
        assert reply.uses[1].admits_at_us == 0
    assert await logs.dump() == before


async def test_callers_at_the_same_time_get_exactly_the_limit(
    scripts: RedisScripts, owner: Owner
) -> None:
    window = replace(THREE, limit=100)
    replies = await asyncio.gather(*(ask(scripts, owner, window) for _ in range(300)))
    assert sum(reply.admitted for reply in replies) == 100


async def test_the_log_holds_no_more_than_the_limit_and_expires_by_itself(
    scripts: RedisScripts, owner: Owner, logs: Logs
) -> None:
    minute: tuple[int, ...] = ()
    for _ in range(10):
        for _ in range(4):
            await ask(scripts, owner, THREE)
        await logs.age(MINUTE_US)
        await ask(scripts, owner, THREE)
        minute, _ = await logs.stored()
        assert len(minute) <= THREE.limit
    expires_ms = await logs.redis.pexpiretime(logs.keys[0])
    assert expires_ms == -(-(minute[-1] + MINUTE_US) // 1_000)


async def test_a_lower_limit_waits_for_as_many_as_it_is_over(
    scripts: RedisScripts, owner: Owner
) -> None:
    times = [(await ask(scripts, owner, FIVE)).now_us for _ in range(5)]
    reply = await ask(scripts, owner, replace(FIVE, limit=2))
    assert reply.uses[0].used == 5
    # Four must leave until one is left and one more may come.
    assert reply.uses[0].admits_at_us == times[3] + DAY_US


async def test_in_shadow_mode_it_tells_and_enters_nothing_where_it_would_refuse(
    scripts: RedisScripts, owner: Owner, logs: Logs
) -> None:
    shadow = replace(THREE, shadow=True)
    replies = [await ask(scripts, owner, shadow, FIVE) for _ in range(5)]
    assert all(reply.admitted for reply in replies)
    assert [bool(reply.uses[0].admits_at_us) for reply in replies] == [False] * 3 + [True] * 2
    assert [len(log) for log in await logs.stored()] == [3, 5]


async def test_a_clock_that_was_stepped_back_keeps_nobody_out(
    scripts: RedisScripts, owner: Owner, logs: Logs
) -> None:
    for _ in range(3):
        await ask(scripts, owner, THREE)
    await logs.age(-2 * MINUTE_US)
    reply = await ask(scripts, owner, THREE)
    assert (reply.admitted, reply.uses[0].used) == (True, 1)
    assert len((await logs.stored())[0]) == 1


async def test_in_preflight_every_limit_is_judged_before_anything_moves(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put()
    mine = Logs(team_owner(team.team_id), (THREE,), "key", team.redis)
    terms = replace(terms_of(PLAIN), request_burst_us=10**12)

    async def preflight() -> Verdict:
        windows = window_terms((THREE,), uuid.uuid4().hex, "key")
        return (await scripts.preflight(team.team_id, replace(terms, windows=windows))).verdict

    assert [await preflight() for _ in range(3)] == [Verdict.ADMITTED] * 3
    before = await mine.dump(), await team.snapshot()
    assert [await preflight() for _ in range(10)] == [Verdict.LIMITED] * 10
    assert (await mine.dump(), await team.snapshot()) == before

    # The other way round: the window has room and the tokens don't.
    await mine.age(MINUTE_US)
    await scripts.postflight(team.team_id, charge_of(PLAIN, 1_000))
    before = await mine.dump(), await team.snapshot()
    assert await preflight() is Verdict.LIMITED
    assert (await mine.dump(), await team.snapshot()) == before


async def test_a_balance_below_zero_is_told_before_windows_are_judged(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put(balance_nano_usd=-1)
    windows = window_terms((THREE,), "name", "key")
    reply = await scripts.preflight(team.team_id, replace(terms_of(PLAIN), windows=windows))
    assert (reply.verdict, reply.windows) == (Verdict.BALANCE_NEGATIVE, ())


async def test_what_is_no_log_is_an_error_and_nobody_is_admitted(
    scripts: RedisScripts, owner: Owner, logs: Logs
) -> None:
    await logs.redis.set(logs.keys[1], "no log", px=60_000)
    with pytest.raises(NotDoneError):
        await ask(scripts, owner, THREE, FIVE)
    assert await logs.redis.exists(logs.keys[0]) == 0


@pytest.mark.parametrize(
    ("most", "length_us"),
    [
        pytest.param(0, 1, id="never admits"),
        pytest.param(1, 0, id="no length"),
        pytest.param(1, 2**53, id="too long for a script"),
    ],
)
async def test_impossible_windows_are_not_sent(
    scripts: RedisScripts, owner: Owner, most: int, length_us: int
) -> None:
    with pytest.raises(OutOfRangeError):
        await scripts.judge_windows(
            owner, [WindowTerms(window_log("G", "L"), most, length_us, "name")]
        )


@pytest.mark.parametrize("address", ["", "a}b{c", "10.0.0.1 ", "10.0.0.1\n", "FE80::1"])
def test_what_is_no_address_owns_nothing(address: str) -> None:
    with pytest.raises(InvalidAddressError):
        address_owner(address)
