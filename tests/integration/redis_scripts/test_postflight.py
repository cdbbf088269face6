"""Postflight on a real server: what is charged, to the digit, and what is left alone."""

import asyncio

import pytest
from integration.redis_scripts.team import Team
from integration.redis_scripts.terms import CAPS, PLAIN, charge_of

from redis_scripts import Charge, DebtCaps, NotDoneError, OutOfRangeError, RedisScripts

HOUR_MS = 3_600_000
JITTER_MS = 180_000


async def test_a_charge_moves_the_token_tat_and_the_balance(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put(request_tat_us=7, balance_nano_usd=1_000)

    reply = await scripts.postflight(team.team_id, charge_of(PLAIN, 1_000, 400))

    assert reply.token_tat_us == reply.now_us + 1_000_000
    assert (reply.request_tat_us, reply.balance_nano_usd) == (7, 600)
    assert await team.tat_us(team.keys.token_tat) == reply.token_tat_us
    assert await team.redis.get(team.keys.balance) == b"600"


async def test_an_overshoot_adds_to_the_debt(scripts: RedisScripts, team: Team) -> None:
    first = await scripts.postflight(team.team_id, charge_of(PLAIN, 600_000))
    second = await scripts.postflight(team.team_id, charge_of(PLAIN, 600_000))
    assert first.token_tat_us == first.now_us + 600_000_000
    assert second.token_tat_us == first.token_tat_us + 600_000_000


async def test_only_the_charged_keys_change(scripts: RedisScripts, team: Team) -> None:
    await team.put(request_tat_us=7)
    before = await team.snapshot()
    await scripts.postflight(team.team_id, charge_of(PLAIN, 1, 1))
    after = await team.snapshot()
    assert after[team.keys.request_tat] == before[team.keys.request_tat]
    assert after[team.keys.tier] == before[team.keys.tier]
    version, _ = after[team.keys.balance_version]
    assert version == before[team.keys.balance_version][0]


async def test_no_usage_and_no_debit_move_nothing(scripts: RedisScripts, team: Team) -> None:
    await team.put(request_tat_us=7, token_tat_us=8)
    before = await team.snapshot()
    reply = await scripts.postflight(team.team_id, Charge(0, 0, CAPS))
    assert await team.snapshot() == before
    assert (reply.request_tat_us, reply.token_tat_us) == (7, 8)
    assert reply.balance_nano_usd == 1_000_000


async def test_a_missing_balance_is_not_created(scripts: RedisScripts, team: Team) -> None:
    reply = await scripts.postflight(team.team_id, charge_of(PLAIN, 0, 400))
    assert reply.balance_nano_usd is None
    assert await team.snapshot() == {}


async def test_the_fence_of_a_missing_balance_keeps_its_life(
    scripts: RedisScripts, team: Team
) -> None:
    await team.redis.set(team.keys.balance_version, 9, px=HOUR_MS)
    before = await team.snapshot()
    await scripts.postflight(team.team_id, Charge(0, 400, CAPS))
    assert await team.snapshot() == before


@pytest.mark.parametrize(
    ("balance", "debit", "left"),
    [
        pytest.param(100, 100, 0, id="to zero"),
        pytest.param(0, 1, -1, id="below zero"),
        pytest.param(-5, 5, -10, id="further below"),
        pytest.param(2**63 - 1, 1, 2**63 - 2, id="the largest balance, to the nano"),
        pytest.param(2**53 + 2, 1, 2**53 + 1, id="beyond what a double holds"),
        pytest.param(-(2**63) + 10, 10, -(2**63), id="down to the lowest balance there is"),
        pytest.param(2**63 - 1, 2**63 - 1, 0, id="the largest debit there is"),
    ],
)
async def test_money_is_exact(
    scripts: RedisScripts, team: Team, balance: int, debit: int, left: int
) -> None:
    await team.put(balance_nano_usd=balance)
    reply = await scripts.postflight(team.team_id, Charge(0, debit, CAPS))
    assert reply.balance_nano_usd == left
    assert await team.redis.get(team.keys.balance) == str(left).encode()


async def test_a_balance_that_would_leave_64_bits_writes_nothing(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put(balance_nano_usd=-(2**63) + 5, token_tat_us=8)
    before = await team.snapshot()
    with pytest.raises(NotDoneError):
        await scripts.postflight(team.team_id, Charge(1_000, 6, CAPS))
    assert await team.snapshot() == before


@pytest.mark.parametrize(
    "charge",
    [
        pytest.param(Charge(-1, 0, CAPS), id="a negative cost"),
        pytest.param(Charge(0, -1, CAPS), id="a negative debit"),
        pytest.param(Charge(0, 2**63, CAPS), id="a debit beyond 64 bits"),
        pytest.param(Charge(1, 0, DebtCaps(2**53, 1)), id="a cap no double holds exactly"),
    ],
)
async def test_what_cannot_be_exact_is_not_sent(
    scripts: RedisScripts, team: Team, charge: Charge
) -> None:
    await team.put()
    before = await team.snapshot()
    with pytest.raises(OutOfRangeError):
        await scripts.postflight(team.team_id, charge)
    assert await team.snapshot() == before


async def test_a_rough_debit_extends_both_balance_keys_alike(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put()
    await team.redis.pexpire(team.keys.balance, 60_000)
    await team.redis.pexpire(team.keys.balance_version, 60_000)
    reply = await scripts.postflight(team.team_id, Charge(0, 1, CAPS))
    expires_ms = await team.redis.pexpiretime(team.keys.balance)
    assert expires_ms == await team.redis.pexpiretime(team.keys.balance_version)
    # The server sets a relative life from the moment it read the command, a moment before `now`.
    assert HOUR_MS - 1_000 <= expires_ms - reply.now_us // 1000 <= HOUR_MS + JITTER_MS


async def test_an_idle_token_tat_lives_an_hour_and_up_to_three_minutes(
    scripts: RedisScripts, team: Team
) -> None:
    reply = await scripts.postflight(team.team_id, charge_of(PLAIN, 1))
    life_ms = await team.redis.pexpiretime(team.keys.token_tat) - reply.now_us // 1000
    assert HOUR_MS <= life_ms <= HOUR_MS + JITTER_MS


async def test_a_token_tat_never_dies_before_its_debt_is_paid(
    scripts: RedisScripts, team: Team
) -> None:
    reply = await scripts.postflight(team.team_id, charge_of(PLAIN, 100_000_000))
    assert reply.token_tat_us is not None
    expires_ms = await team.redis.pexpiretime(team.keys.token_tat)
    assert 0 <= expires_ms * 1000 - reply.token_tat_us < 1000


async def test_a_debt_nobody_can_explain_is_charged_from_the_longest(
    scripts: RedisScripts, team: Team
) -> None:
    now_us = await team.now_us()
    await team.put(token_tat_us=now_us + 10**15, request_tat_us=now_us + 10**15)
    caps = DebtCaps(request_us=5_000_000, token_us=7_000_000)
    reply = await scripts.postflight(team.team_id, charge_of(PLAIN, 1, caps=caps))
    assert (reply.request_capped, reply.token_capped) == (True, True)
    assert reply.token_tat_us == reply.now_us + 7_000_000 + 1_000
    assert reply.request_tat_us == reply.now_us + 5_000_000
    assert await team.tat_us(team.keys.request_tat) == now_us + 10**15


async def test_a_cost_beyond_the_cap_counts_as_the_cap(scripts: RedisScripts, team: Team) -> None:
    reply = await scripts.postflight(team.team_id, Charge(10**30, 0, DebtCaps(1, 9_000_000)))
    assert reply.token_tat_us == reply.now_us + 9_000_000
    assert reply.token_capped is False


async def test_a_hundred_debits_at_once_are_all_counted(scripts: RedisScripts, team: Team) -> None:
    await team.put(balance_nano_usd=1_000)
    charge = charge_of(PLAIN, 10, 7)
    replies = await asyncio.gather(*(scripts.postflight(team.team_id, charge) for _ in range(100)))
    assert sorted(reply.balance_nano_usd or 0 for reply in replies) == [
        1_000 - 7 * count for count in range(100, 0, -1)
    ]
    assert await team.redis.get(team.keys.balance) == b"300"
