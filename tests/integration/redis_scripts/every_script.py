"""Each script once, for one team, in an order in which each does its work."""

from integration.redis_scripts.terms import CAPS, PLAIN, charge_of, terms_of
from msgspec.structs import replace

from redis_scripts import (
    BalanceAdjustment,
    BalanceFill,
    BalanceRefresh,
    BalanceRepair,
    Charge,
    CountCharge,
    CountedSpend,
    CountTerms,
    DayUsage,
    DayWindow,
    DebtCharge,
    DebtTerms,
    LeaseEnd,
    LeaseTerms,
    RedisScripts,
    SettledBalance,
    Spend,
    SpendCharge,
    SpendFill,
    SpendRefresh,
    SpendRepair,
    SpendTerms,
    TierEviction,
    TierFill,
    Verdict,
    WindowTerms,
)
from redis_scripts.keys import (
    INPUT_TAT,
    LEASES,
    address_owner,
    day_counter,
    spend_counter,
    team_owner,
    window_log,
)

DAYS = DayWindow(0, 0, 2**52)
COUNTER = day_counter(DAYS.boundary_us, DAYS.end_us, "requests")
LOGS = (window_log("Chat", "Minute", "key"), window_log("Chat", "Day", "key"))
FURTHER = (
    DebtTerms(INPUT_TAT, 1, 10**9, CAPS.token_us),
    LeaseTerms(LEASES, 1, "call", 10**9),
    CountTerms((COUNTER, COUNTER), 9, 1, 1),
)


async def every_script(scripts: RedisScripts, team_id: str) -> None:
    """Run each script once, in an order in which each does its work."""
    assert await scripts.fill_tier(team_id, "tier_1", 1) is TierFill.FILLED
    assert await scripts.fill_balance(team_id, SettledBalance(100, 1)) is BalanceFill.FILLED
    admitted = await scripts.preflight(team_id, terms_of(PLAIN))
    assert admitted.verdict is Verdict.ADMITTED
    charged = await scripts.postflight(team_id, charge_of(PLAIN, 1_000, 40))
    assert charged.balance_nano_usd == 60
    assert charged.request_tat_us == admitted.request_tat_us
    await every_further_limit(scripts, team_id)
    await every_window(scripts, team_id)
    await every_spend(scripts, team_id)
    charged = await scripts.postflight(team_id, Charge(0, 0, CAPS))
    assert (await scripts.cap_debts(team_id, CAPS)).token_tat_us == charged.token_tat_us
    adjusted = await scripts.adjust_balance(team_id, 5, 2)
    assert adjusted is BalanceAdjustment.APPLIED
    refreshed = await scripts.refresh_balance(team_id, SettledBalance(70, 3))
    assert refreshed is BalanceRefresh.APPLIED
    repaired = await scripts.repair_balance(team_id, 70, SettledBalance(71, 3))
    assert repaired is BalanceRepair.APPLIED
    assert await scripts.evict_tier(team_id, 2) is TierEviction.EVICTED
    state = await scripts.limits_state(team_id)
    assert (state.tier_id, state.tier_version) == (None, 2)
    assert (state.balance_nano_usd, state.balance_version) == (71, 3)


async def every_spend(scripts: RedisScripts, team_id: str) -> None:
    """Count the spend of the team and of a key, meet its limit, and settle it."""
    end_us = DAYS.end_us
    terms, charges = [], []
    for key_id in (None, "key-1"):
        spent = Spend(key_id, 0, end_us, 4, 1)
        assert await scripts.fill_spend(team_id, spent) is SpendFill.FILLED
        places = (spend_counter(0, end_us, key_id),) * 2
        terms.append(SpendTerms(places, end_us, 9))
        charges.append(SpendCharge(places, end_us))
    generous = replace(terms_of(PLAIN), request_burst_us=10**9, token_burst_us=10**9)
    met = await scripts.preflight(team_id, replace(generous, further=tuple(terms), days=DAYS))
    assert (met.verdict, [each.value for each in met.further]) == (Verdict.ADMITTED, [4, 4])
    charged = await scripts.postflight(team_id, Charge(0, 5, CAPS, tuple(charges), DAYS))
    assert [each.value for each in charged.further] == [9, 9]
    met = await scripts.preflight(team_id, replace(generous, further=tuple(terms), days=DAYS))
    assert met.verdict is Verdict.LIMITED
    assert (await scripts.limits_state(team_id, terms, DAYS)).further == (9, 9)
    settled = Spend(None, 0, end_us, 8, 2)
    assert await scripts.refresh_spend(team_id, settled) is SpendRefresh.APPLIED
    lower = replace(settled, amount_nano_usd=7)
    mended = await scripts.repair_spend(team_id, CountedSpend(8, 2), lower)
    assert mended is SpendRepair.APPLIED


async def every_window(scripts: RedisScripts, team_id: str) -> None:
    """Meet windows of the team's key in both scripts, and those of an address."""
    mine = [WindowTerms(place, 9, 10**9, "first") for place in LOGS]
    generous = replace(terms_of(PLAIN), request_burst_us=10**9, token_burst_us=10**9)
    admitted = await scripts.preflight(team_id, replace(generous, windows=tuple(mine)))
    assert [use.used for use in admitted.windows] == [1, 1]
    mine = [replace(window, name="second") for window in mine]
    judged = await scripts.judge_windows(team_owner(team_id), mine)
    assert [use.used for use in judged.uses] == [2, 2]
    state = await scripts.windows_state(team_owner(team_id), mine)
    assert [use.used for use in state.uses] == [2, 2]
    number = int(team_id.rpartition("_")[2])
    address = address_owner(f"10.0.{number // 256}.{number % 256}")
    assert (await scripts.judge_windows(address, mine)).admitted


async def every_further_limit(scripts: RedisScripts, team_id: str) -> None:
    """Meet each kind of further limit once; the day is all of time."""
    used = DayUsage(0, DAYS.end_us, 4, 0)
    assert await scripts.fill_day(team_id, used) == 2
    terms = replace(terms_of(PLAIN), request_burst_us=10**9, token_burst_us=10**9)
    admitted = await scripts.preflight(team_id, replace(terms, further=FURTHER, days=DAYS))
    assert [reading.value for reading in admitted.further[1:]] == [1, 5]
    assert await scripts.renew_lease(team_id, "call", 10**9)
    charges = (
        DebtCharge(INPUT_TAT, 0, CAPS.token_us),
        LeaseEnd(LEASES, "call"),
        CountCharge(FURTHER[2].places, 7),
    )
    charged = await scripts.postflight(team_id, Charge(0, 0, CAPS, charges, DAYS))
    assert [reading.value for reading in charged.further[1:]] == [0, 12]
    assert not await scripts.release_lease(team_id, "call")
    state = await scripts.limits_state(team_id, FURTHER, DAYS)
    assert state.further == tuple(reading.value for reading in charged.further)
