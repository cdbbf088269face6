"""Preflight on a real server: who is refused and why, and that a refusal moves nothing."""

from typing import Any

import pytest
from integration.redis_scripts.team import TIER, Team
from integration.redis_scripts.terms import CAPS, PLAIN, terms_of

from redis_scripts import DebtCaps, NotDoneError, PreflightTerms, RedisScripts, Verdict

HOUR_US = 3_600_000_000
HOUR_MS = 3_600_000
JITTER_MS = 180_000

# Debts are microseconds ahead of the server's clock, long enough not to run out meanwhile.
REFUSALS = [
    pytest.param({"tier": None}, Verdict.TIER_MISSING, id="tier missing"),
    pytest.param({"tier": "tier_2"}, Verdict.TIER_DIFFERS, id="tier differs"),
    pytest.param({"balance_nano_usd": None}, Verdict.BALANCE_MISSING, id="balance missing"),
    pytest.param({"balance_nano_usd": -1}, Verdict.BALANCE_NEGATIVE, id="balance just below zero"),
    pytest.param(
        {"balance_nano_usd": -(2**63)}, Verdict.BALANCE_NEGATIVE, id="the lowest balance there is"
    ),
    pytest.param({"request_debt_us": HOUR_US}, Verdict.LIMITED, id="request debt"),
    pytest.param({"token_debt_us": HOUR_US}, Verdict.LIMITED, id="token debt"),
    pytest.param(
        {"request_debt_us": HOUR_US, "token_debt_us": HOUR_US}, Verdict.LIMITED, id="both debts"
    ),
    pytest.param(
        {"tier": None, "balance_nano_usd": None, "token_debt_us": HOUR_US},
        Verdict.TIER_MISSING,
        id="the tier is judged first",
    ),
    pytest.param(
        {"tier": "tier_2", "balance_nano_usd": -1},
        Verdict.TIER_DIFFERS,
        id="the tier is judged before the balance",
    ),
    pytest.param(
        {"balance_nano_usd": None, "request_debt_us": HOUR_US},
        Verdict.BALANCE_MISSING,
        id="a missing balance is judged before the limits",
    ),
    pytest.param(
        {"balance_nano_usd": -5, "request_debt_us": HOUR_US},
        Verdict.BALANCE_NEGATIVE,
        id="a negative balance is judged before the limits",
    ),
]


async def arrange(
    team: Team,
    *,
    request_debt_us: int | None = None,
    token_debt_us: int | None = None,
    **keys: Any,
) -> None:
    now_us = await team.now_us()
    await team.put(
        request_tat_us=None if request_debt_us is None else now_us + request_debt_us,
        token_tat_us=None if token_debt_us is None else now_us + token_debt_us,
        **keys,
    )


@pytest.mark.parametrize(("state", "verdict"), REFUSALS)
async def test_a_refusal_moves_nothing(
    scripts: RedisScripts, team: Team, state: dict[str, Any], verdict: Verdict
) -> None:
    await arrange(team, **state)
    before = await team.snapshot()

    replies = [await scripts.preflight(team.team_id, terms_of(PLAIN)) for _ in range(3)]

    assert {reply.verdict for reply in replies} == {verdict}
    reply = replies[-1]
    assert await team.snapshot() == before
    assert reply.tier_id == state.get("tier", TIER)
    assert reply.balance_nano_usd == state.get("balance_nano_usd", 1_000_000)
    assert reply.request_tat_us == await team.tat_us(team.keys.request_tat)
    assert reply.token_tat_us == await team.tat_us(team.keys.token_tat)


async def test_a_team_nobody_knows_gets_no_keys(scripts: RedisScripts, team: Team) -> None:
    reply = await scripts.preflight(team.team_id, terms_of(PLAIN))
    assert reply.verdict is Verdict.TIER_MISSING
    assert (reply.tier_id, reply.balance_nano_usd) == (None, None)
    assert await team.snapshot() == {}


async def test_who_assumes_no_tier_is_told_it(scripts: RedisScripts, team: Team) -> None:
    await team.put()
    reply = await scripts.preflight(team.team_id, PreflightTerms("", 0, 0, 0, CAPS))
    assert (reply.verdict, reply.tier_id) == (Verdict.TIER_DIFFERS, TIER)


@pytest.mark.parametrize("balance_nano_usd", [0, 1, 2**63 - 1])
async def test_an_admitted_request_moves_the_request_tat_alone(
    scripts: RedisScripts, team: Team, balance_nano_usd: int
) -> None:
    await team.put(balance_nano_usd=balance_nano_usd, token_tat_us=1)
    before = await team.snapshot()

    reply = await scripts.preflight(team.team_id, terms_of(PLAIN))

    assert reply.verdict is Verdict.ADMITTED
    assert reply.request_tat_us == reply.now_us + 1_000_000
    assert (reply.token_tat_us, reply.balance_nano_usd) == (1, balance_nano_usd)
    after = await team.snapshot()
    assert after.pop(team.keys.request_tat) is not None
    assert after == before
    assert await team.tat_us(team.keys.request_tat) == reply.request_tat_us
    assert (await scripts.preflight(team.team_id, terms_of(PLAIN))).verdict is Verdict.LIMITED


async def test_a_request_tat_in_the_past_earns_no_credit(scripts: RedisScripts, team: Team) -> None:
    await arrange(team, request_debt_us=-HOUR_US)
    reply = await scripts.preflight(team.team_id, terms_of(PLAIN))
    assert reply.request_tat_us == reply.now_us + 1_000_000


async def test_an_idle_request_tat_lives_an_hour_and_up_to_three_minutes(
    scripts: RedisScripts, team: Team
) -> None:
    await team.put()
    reply = await scripts.preflight(team.team_id, terms_of(PLAIN))
    expires_ms = await team.redis.pexpiretime(team.keys.request_tat)
    life_ms = expires_ms - reply.now_us // 1000
    assert HOUR_MS <= life_ms <= HOUR_MS + JITTER_MS


async def test_a_request_tat_never_dies_before_its_debt_is_paid(
    scripts: RedisScripts, team: Team
) -> None:
    # A burst large enough to admit with five hours of debt.
    policy = terms_of(PLAIN)
    terms = PreflightTerms(policy.tier_id, policy.interval_us, 6 * HOUR_US, 0, CAPS)
    await arrange(team, request_debt_us=5 * HOUR_US)

    reply = await scripts.preflight(team.team_id, terms)

    assert reply.verdict is Verdict.ADMITTED
    assert reply.request_tat_us is not None
    expires_ms = await team.redis.pexpiretime(team.keys.request_tat)
    assert 0 <= expires_ms * 1000 - reply.request_tat_us < 1000


async def test_a_debt_nobody_can_explain_is_judged_as_the_longest(
    scripts: RedisScripts, team: Team
) -> None:
    await arrange(team, request_debt_us=50 * HOUR_US, token_debt_us=60 * HOUR_US)
    before = await team.snapshot()
    caps = DebtCaps(request_us=5_000_000, token_us=7_000_000)

    reply = await scripts.preflight(team.team_id, terms_of(PLAIN, caps))

    assert reply.verdict is Verdict.LIMITED
    assert (reply.request_capped, reply.token_capped) == (True, True)
    assert reply.request_tat_us == reply.now_us + 5_000_000
    assert reply.token_tat_us == reply.now_us + 7_000_000
    assert await team.snapshot() == before

    capped = await scripts.cap_debts(team.team_id, caps)

    assert (capped.request_capped, capped.token_capped) == (True, True)
    assert await team.tat_us(team.keys.request_tat) == capped.now_us + 5_000_000
    assert await team.tat_us(team.keys.token_tat) == capped.now_us + 7_000_000
    after = await team.snapshot()
    again = await scripts.cap_debts(team.team_id, caps)
    assert (again.request_capped, again.token_capped) == (False, False)
    assert await team.snapshot() == after
    reply = await scripts.preflight(team.team_id, terms_of(PLAIN, caps))
    assert (reply.request_capped, reply.token_capped) == (False, False)


async def test_a_capped_debt_within_the_burst_is_written_back_when_admitted(
    scripts: RedisScripts, team: Team
) -> None:
    await arrange(team, request_debt_us=50 * HOUR_US)
    terms = PreflightTerms(TIER, 1_000_000, 5_000_000, 0, DebtCaps(5_000_000, 5_000_000))
    reply = await scripts.preflight(team.team_id, terms)
    assert (reply.verdict, reply.request_capped) == (Verdict.ADMITTED, True)
    assert reply.request_tat_us == reply.now_us + 6_000_000
    assert await team.tat_us(team.keys.request_tat) == reply.request_tat_us


async def test_reading_the_state_moves_nothing(scripts: RedisScripts, team: Team) -> None:
    await team.put(request_tat_us=11, token_tat_us=22, balance_nano_usd=-33, version=44)
    await team.redis.set(team.keys.tier_version, 55, px=HOUR_MS)
    before = await team.snapshot()

    state = await scripts.limits_state(team.team_id)

    assert await team.snapshot() == before
    assert (state.request_tat_us, state.token_tat_us, state.tier_id) == (11, 22, TIER)
    assert (state.balance_nano_usd, state.balance_version, state.tier_version) == (-33, 44, 55)
    assert state.now_us <= await team.now_us()


async def test_the_state_of_a_team_nobody_knows(scripts: RedisScripts, team: Team) -> None:
    state = await scripts.limits_state(team.team_id)
    assert (state.request_tat_us, state.token_tat_us) == (None, None)
    assert (state.tier_id, state.tier_version) == (None, None)
    assert (state.balance_nano_usd, state.balance_version) == (None, None)


@pytest.mark.parametrize("name", ["request_tat", "token_tat", "tier", "balance"])
async def test_a_key_of_another_kind_is_an_error_and_no_admission(
    scripts: RedisScripts, team: Team, name: str
) -> None:
    await team.put()
    key = getattr(team.keys, name)
    await team.redis.delete(key)
    await team.redis.rpush(key, "a list")
    before = await team.snapshot()
    with pytest.raises(NotDoneError):
        await scripts.preflight(team.team_id, terms_of(PLAIN))
    assert await team.snapshot() == before


@pytest.mark.parametrize("name", ["request_tat", "token_tat"])
async def test_a_tat_that_is_no_number_is_an_error_and_no_admission(
    scripts: RedisScripts, team: Team, name: str
) -> None:
    await team.put()
    await team.redis.set(getattr(team.keys, name), "soon")
    before = await team.snapshot()
    with pytest.raises(NotDoneError):
        await scripts.preflight(team.team_id, terms_of(PLAIN))
    assert await team.snapshot() == before
