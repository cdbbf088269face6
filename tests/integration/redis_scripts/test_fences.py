"""How long fences and what they fence live, and that money moves to the digit."""

import pytest
from integration.redis_scripts.team import Team

from redis_scripts import (
    BalanceAdjustment,
    BalanceFill,
    BalanceRefresh,
    BalanceRepair,
    OutOfRangeError,
    RedisScripts,
    SettledBalance,
    TierEviction,
    TierFill,
)

MINUTE_MS = 60_000
HOUR_MS = 3_600_000


async def life_ms(team: Team, key: str) -> int:
    """Return the life that a key was given by a script that has just run."""
    return int(await team.redis.pexpiretime(key)) - await team.now_us() // 1000


def about_an_hour(milliseconds: int) -> bool:
    """A second less is granted for the time since the script ran."""
    return HOUR_MS - 1_000 <= milliseconds <= HOUR_MS + 3 * MINUTE_MS


async def test_a_tier_lives_five_minutes_and_its_fence_longer(
    scripts: RedisScripts, team: Team
) -> None:
    assert await scripts.fill_tier(team.team_id, "tier_2", 7) is TierFill.FILLED
    assert await team.redis.mget(team.keys.tier, team.keys.tier_version) == [b"tier_2", b"7"]
    tier_life_ms = await life_ms(team, team.keys.tier)
    assert 5 * MINUTE_MS - 1_000 <= tier_life_ms <= 6 * MINUTE_MS
    assert about_an_hour(await life_ms(team, team.keys.tier_version))


async def test_an_eviction_leaves_a_fence_for_an_hour(scripts: RedisScripts, team: Team) -> None:
    await scripts.fill_tier(team.team_id, "tier_2", 7)
    assert await scripts.evict_tier(team.team_id, 8) is TierEviction.EVICTED
    assert list(await team.snapshot()) == [team.keys.tier_version]
    assert about_an_hour(await life_ms(team, team.keys.tier_version))


@pytest.mark.parametrize("version", [6, 7])
async def test_old_news_of_a_tier_moves_nothing(
    scripts: RedisScripts, team: Team, version: int
) -> None:
    await scripts.fill_tier(team.team_id, "tier_2", 7)
    before = await team.snapshot()
    assert await scripts.evict_tier(team.team_id, version) is TierEviction.DUPLICATE
    assert await team.snapshot() == before


async def test_a_stale_tier_fill_moves_nothing(scripts: RedisScripts, team: Team) -> None:
    assert await scripts.evict_tier(team.team_id, 8) is TierEviction.FENCED
    before = await team.snapshot()
    assert await scripts.fill_tier(team.team_id, "tier_2", 7) is TierFill.STALE
    assert await team.snapshot() == before


async def test_versions_are_compared_as_numbers(scripts: RedisScripts, team: Team) -> None:
    # As text, 10 would come before 9.
    await scripts.evict_tier(team.team_id, 10)
    assert await scripts.fill_tier(team.team_id, "tier_2", 9) is TierFill.STALE
    assert await scripts.evict_tier(team.team_id, 9) is TierEviction.DUPLICATE
    assert await scripts.adjust_balance(team.team_id, 1, 10) is BalanceAdjustment.FENCED
    assert await scripts.fill_balance(team.team_id, SettledBalance(6, 9)) is BalanceFill.STALE
    assert await scripts.adjust_balance(team.team_id, 1, 9) is BalanceAdjustment.DUPLICATE
    settled = SettledBalance(6, 9)
    assert await scripts.refresh_balance(team.team_id, settled) is BalanceRefresh.STALE
    settled = SettledBalance(5, 10)
    assert await scripts.refresh_balance(team.team_id, settled) is BalanceRefresh.APPLIED


async def test_the_version_after_nine_is_ten(scripts: RedisScripts, team: Team) -> None:
    await team.put(balance_nano_usd=5, version=9)
    assert await scripts.adjust_balance(team.team_id, 1, 10) is BalanceAdjustment.APPLIED


async def test_a_filled_balance_and_its_version_live_and_die_together(
    scripts: RedisScripts, team: Team
) -> None:
    filled = await scripts.fill_balance(team.team_id, SettledBalance(-5, 3))
    assert filled is BalanceFill.FILLED
    assert await team.redis.mget(team.keys.balance, team.keys.balance_version) == [b"-5", b"3"]
    expires_ms = {
        await team.redis.pexpiretime(team.keys.balance),
        await team.redis.pexpiretime(team.keys.balance_version),
    }
    assert len(expires_ms) == 1
    assert about_an_hour(await life_ms(team, team.keys.balance))


async def test_a_balance_that_is_there_is_not_filled(scripts: RedisScripts, team: Team) -> None:
    await team.put(balance_nano_usd=100, version=3)
    before = await team.snapshot()
    filled = await scripts.fill_balance(team.team_id, SettledBalance(90, 4))
    assert filled is BalanceFill.PRESENT
    assert await team.snapshot() == before


async def test_a_credit_gives_both_keys_a_new_life(scripts: RedisScripts, team: Team) -> None:
    # In the last second of its life, or the fence it leaves would die with it.
    await team.put(balance_nano_usd=-1, version=3)
    for key in (team.keys.balance, team.keys.balance_version):
        await team.redis.pexpire(key, 60_000)
    adjusted = await scripts.adjust_balance(team.team_id, 10, 4)
    assert adjusted is BalanceAdjustment.APPLIED
    assert about_an_hour(await life_ms(team, team.keys.balance))
    assert await team.redis.pexpiretime(team.keys.balance) == await team.redis.pexpiretime(
        team.keys.balance_version
    )


@pytest.mark.parametrize("version", [2, 3])
async def test_a_credit_told_again_moves_nothing(
    scripts: RedisScripts, team: Team, version: int
) -> None:
    await team.put(balance_nano_usd=-1, version=3)
    before = await team.snapshot()
    adjusted = await scripts.adjust_balance(team.team_id, 10, version)
    assert adjusted is BalanceAdjustment.DUPLICATE
    assert await team.snapshot() == before


async def test_a_missed_version_evicts_the_balance_and_fences_it(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put(balance_nano_usd=100, version=3, tier=None)
    adjusted = await scripts.adjust_balance(team.team_id, 10, 5)
    assert adjusted is BalanceAdjustment.EVICTED
    assert list(await team.snapshot()) == [team.keys.balance_version]
    assert await team.redis.get(team.keys.balance_version) == b"5"
    assert about_an_hour(await life_ms(team, team.keys.balance_version))


async def test_a_balance_whose_version_is_unknown_is_not_trusted(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put(balance_nano_usd=100, version=3)
    await team.redis.delete(team.keys.balance_version)
    adjusted = await scripts.adjust_balance(team.team_id, 10, 4)
    assert adjusted is BalanceAdjustment.EVICTED


@pytest.mark.parametrize(
    ("before", "delta", "after"),
    [
        pytest.param(-1, 10_000_000_000, 9_999_999_999, id="a credit of ten dollars"),
        pytest.param(5, -6, -1, id="an adjustment below zero"),
        pytest.param(2**53 + 1, 1, 2**53 + 2, id="beyond what a double holds"),
        pytest.param(-(2**63), 2**63 - 1, -1, id="the largest credit there is"),
    ],
)
async def test_a_credit_is_exact(
    scripts: RedisScripts, team: Team, before: int, delta: int, after: int
) -> None:
    await team.put(balance_nano_usd=before, version=3)
    await scripts.adjust_balance(team.team_id, delta, 4)
    assert await team.redis.get(team.keys.balance) == str(after).encode()


async def test_a_refresh_of_the_same_version_keeps_rough_debits(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put(balance_nano_usd=90, version=3)
    before = await team.snapshot()
    refreshed = await scripts.refresh_balance(team.team_id, SettledBalance(100, 3))
    assert refreshed is BalanceRefresh.DUPLICATE
    assert await team.snapshot() == before


async def test_a_refresh_fills_a_missing_balance_and_extends_it(
    scripts: RedisScripts, team: Team
) -> None:
    refreshed = await scripts.refresh_balance(team.team_id, SettledBalance(2**63 - 1, 3))
    assert refreshed is BalanceRefresh.APPLIED
    assert await team.redis.get(team.keys.balance) == str(2**63 - 1).encode()
    assert about_an_hour(await life_ms(team, team.keys.balance))
    assert about_an_hour(await life_ms(team, team.keys.balance_version))


@pytest.mark.parametrize(
    ("expected", "version", "outcome", "after"),
    [
        pytest.param(90, 3, BalanceRepair.APPLIED, b"100", id="still as it was read"),
        pytest.param(91, 3, BalanceRepair.MOVED, b"90", id="another balance by now"),
        pytest.param(90, 4, BalanceRepair.MOVED, b"90", id="another version by now"),
    ],
)
async def test_a_repair_compares_before_it_sets(
    scripts: RedisScripts,
    team: Team,
    expected: int,
    version: int,
    outcome: BalanceRepair,
    after: bytes,
) -> None:
    await team.put(balance_nano_usd=90, version=3)
    settled = SettledBalance(100, version)
    assert await scripts.repair_balance(team.team_id, expected, settled) is outcome
    assert await team.redis.get(team.keys.balance) == after


async def test_a_repair_of_nothing_creates_nothing(scripts: RedisScripts, team: Team) -> None:
    outcome = await scripts.repair_balance(team.team_id, 90, SettledBalance(100, 3))
    assert outcome is BalanceRepair.MOVED
    assert await team.snapshot() == {}


@pytest.mark.parametrize("balance", [2**63, -(2**63) - 1])
async def test_a_balance_beyond_64_bits_is_not_sent(
    scripts: RedisScripts, team: Team, balance: int
) -> None:
    with pytest.raises(OutOfRangeError):
        await scripts.fill_balance(team.team_id, SettledBalance(balance, 1))
    assert await team.snapshot() == {}


@pytest.mark.parametrize("version", [-1, 2**53])
async def test_a_version_no_script_can_compare_is_not_sent(
    scripts: RedisScripts, team: Team, version: int
) -> None:
    with pytest.raises(OutOfRangeError):
        await scripts.evict_tier(team.team_id, version)
    assert await team.snapshot() == {}
