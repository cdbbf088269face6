"""Spend on a real server: judged to the digit, added once, and set only by newer versions."""

import asyncio
from typing import Any

import pytest
from integration.redis_scripts.team import Team
from integration.redis_scripts.terms import CAPS, PLAIN, terms_of
from msgspec.structs import replace

from redis_scripts import (
    ANY_DAY,
    Charge,
    CountedSpend,
    DayWindow,
    NotDoneError,
    OutOfRangeError,
    RedisScripts,
    Spend,
    SpendCharge,
    SpendFill,
    SpendRefresh,
    SpendRepair,
    SpendTerms,
    Verdict,
)
from redis_scripts.keys import spend_counter, version_of

HOUR_US = 3_600_000_000
END_US = 2**53 - 1
PLACE = spend_counter(0, END_US, None)
PLACES = (PLACE, PLACE)
MOST = 10**18 - 1


def spend(amount: int, version: int = 1) -> Spend:
    return Spend(None, 0, END_US, amount, version)


async def judge(scripts: RedisScripts, team: Team, most: int, *, shadow: bool = False) -> Verdict:
    terms = replace(
        terms_of(PLAIN),
        interval_us=0,
        further=(SpendTerms(PLACES, END_US, most, shadow),),
        days=ANY_DAY,
    )
    return (await scripts.preflight(team.team_id, terms)).verdict


async def add(scripts: RedisScripts, team: Team, nano_usd: int) -> int | None:
    charge = Charge(0, nano_usd, CAPS, (SpendCharge(PLACES, END_US),), ANY_DAY)
    return (await scripts.postflight(team.team_id, charge)).further[0].value


async def counted(team: Team) -> tuple[Any, Any]:
    names = [PLACE.of(team.team_id), version_of(PLACE).of(team.team_id)]
    spent, version = await team.redis.mget(names)
    return spent, version


@pytest.mark.parametrize(
    "most", [0, 1, 9, 10, 99, 100, 2**53 - 1, 2**53, 2**53 + 1, 10**17, MOST - 1, MOST]
)
async def test_a_nano_below_the_limit_is_admitted_and_at_it_refused(
    scripts: RedisScripts, team: Team, most: int
) -> None:
    await team.put()
    for spent, verdict in ((most - 1, Verdict.ADMITTED), (most, Verdict.LIMITED)):
        if spent < 0:
            continue
        await team.redis.set(PLACE.of(team.team_id), spent)
        before = await team.redis.dump(PLACE.of(team.team_id))
        assert await judge(scripts, team, most) is verdict
        assert await judge(scripts, team, most, shadow=True) is Verdict.ADMITTED
        assert await team.redis.dump(PLACE.of(team.team_id)) == before


async def test_debits_add_up_where_a_double_would_not(scripts: RedisScripts, team: Team) -> None:
    await team.put(balance_nano_usd=2**62)
    await scripts.fill_spend(team.team_id, spend(2**53))
    assert await judge(scripts, team, 2**53 + 2) is Verdict.ADMITTED
    assert await add(scripts, team, 1) == 2**53 + 1
    assert await judge(scripts, team, 2**53 + 2) is Verdict.ADMITTED
    assert await add(scripts, team, 1) == 2**53 + 2
    assert await judge(scripts, team, 2**53 + 2) is Verdict.LIMITED


@pytest.mark.parametrize(
    ("spent", "debit", "after"),
    [
        pytest.param(MOST, MOST, 2 * MOST, id="the largest sum"),
        pytest.param(10**18, 1, 10**18, id="at the ceiling"),
        pytest.param(5, 10**18, 10**18, id="a debit above the ceiling"),
        pytest.param(5, 2**63 - 1, 10**18, id="the largest debit there is"),
    ],
)
async def test_no_counter_is_ever_too_full_to_charge(
    scripts: RedisScripts, team: Team, spent: int, debit: int, after: int
) -> None:
    await team.put(balance_nano_usd=0)
    await team.redis.set(PLACE.of(team.team_id), spent)
    assert await add(scripts, team, debit) == after
    assert await team.redis.get(team.keys.balance) == str(-debit).encode()
    assert await judge(scripts, team, MOST) is not Verdict.ADMITTED


async def test_what_is_not_counted_is_asked_for_and_never_begun_by_a_debit(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put()
    assert await judge(scripts, team, MOST) is Verdict.COUNT_MISSING
    assert await add(scripts, team, 7) is None
    assert await counted(team) == (None, None)


async def test_the_server_takes_the_period_that_its_own_clock_is_in(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put()
    now_us = await team.now_us()
    first = spend_counter(now_us - HOUR_US, now_us + HOUR_US, "k")
    second = spend_counter(now_us + HOUR_US, now_us + 9 * HOUR_US, "k")
    await team.redis.mset({first.of(team.team_id): 1, second.of(team.team_id): 2})
    for boundary_us, spent in ((now_us + HOUR_US, 1), (now_us - HOUR_US, 2)):
        terms = SpendTerms((first, second), boundary_us, MOST)
        further = replace(terms_of(PLAIN), interval_us=0, further=(terms,), days=ANY_DAY)
        assert (await scripts.preflight(team.team_id, further)).further[0].value == spent
        state = await scripts.limits_state(team.team_id, (terms,), ANY_DAY)
        assert state.further == (spent,)
        charge = Charge(0, 10, CAPS, (SpendCharge((first, second), boundary_us),), ANY_DAY)
        charged = await scripts.postflight(team.team_id, charge)
        assert charged.further[0].value == spent + 10
    # A caller whose clock is days apart adds to neither.
    far = DayWindow(now_us + HOUR_US, now_us + 2 * HOUR_US, now_us + 3 * HOUR_US)
    charge = Charge(0, 10, CAPS, (SpendCharge((first, second), now_us),), far)
    assert (await scripts.postflight(team.team_id, charge)).further[0].value is None


async def test_debits_at_once_are_all_counted(scripts: RedisScripts, team: Team) -> None:
    await team.put()
    await scripts.fill_spend(team.team_id, spend(0))
    await asyncio.gather(*(add(scripts, team, 3) for _ in range(200)))
    assert await counted(team) == (b"600", b"1")


@pytest.mark.parametrize("stored", ["-1", "", "1.5", "7e3", "nothing", "007"])
async def test_spend_that_is_no_number_is_an_error_and_nothing_is_written(
    scripts: RedisScripts, team: Team, stored: str
) -> None:
    await team.put()
    await team.redis.set(PLACE.of(team.team_id), stored)
    before = await team.snapshot()
    with pytest.raises(NotDoneError):
        await judge(scripts, team, MOST)
    with pytest.raises(NotDoneError):
        await add(scripts, team, 1)
    assert await team.snapshot() == before


@pytest.mark.parametrize("most", [-1, 10**18])
async def test_a_limit_that_nothing_can_reach_is_not_sent(
    scripts: RedisScripts, team: Team, most: int
) -> None:
    await team.put()
    with pytest.raises(OutOfRangeError):
        await judge(scripts, team, most)


async def test_a_refresh_is_of_a_newer_version_or_nothing(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put()
    assert await scripts.refresh_spend(team.team_id, spend(50, 5)) is SpendRefresh.APPLIED
    assert await add(scripts, team, 7) == 57
    assert await scripts.refresh_spend(team.team_id, spend(50, 5)) is SpendRefresh.DUPLICATE
    assert await scripts.refresh_spend(team.team_id, spend(40, 4)) is SpendRefresh.STALE
    assert await counted(team) == (b"57", b"5")
    assert await scripts.refresh_spend(team.team_id, spend(60, 6)) is SpendRefresh.APPLIED
    assert await counted(team) == (b"60", b"6")


async def test_a_fill_is_where_nothing_is_and_nothing_newer_was(
    scripts: RedisScripts, team: Team
) -> None:
    assert await scripts.fill_spend(team.team_id, spend(3, 2)) is SpendFill.FILLED
    assert await scripts.fill_spend(team.team_id, spend(9, 9)) is SpendFill.PRESENT
    await team.redis.delete(PLACE.of(team.team_id))
    assert await scripts.fill_spend(team.team_id, spend(1, 1)) is SpendFill.STALE
    assert await scripts.fill_spend(team.team_id, spend(3, 2)) is SpendFill.FILLED
    await team.redis.delete(PLACE.of(team.team_id))
    # Of the fence's own version the counter is begun again, by a refresh as well.
    assert await scripts.refresh_spend(team.team_id, spend(3, 2)) is SpendRefresh.APPLIED
    assert await counted(team) == (b"3", b"2")


async def test_a_repair_is_of_what_was_read_or_nothing(scripts: RedisScripts, team: Team) -> None:
    await team.put()
    await scripts.fill_spend(team.team_id, spend(57, 5))
    for read in (CountedSpend(56, 5), CountedSpend(57, 4)):
        assert await scripts.repair_spend(team.team_id, read, spend(50, 7)) is SpendRepair.MOVED
    assert await counted(team) == (b"57", b"5")
    read = CountedSpend(57, 5)
    assert await scripts.repair_spend(team.team_id, read, spend(50, 7)) is SpendRepair.APPLIED
    assert await counted(team) == (b"50", b"7")
