"""Every case of the rate-limit specification, against the scripts' own arithmetic.

The scripts read the server's clock and nothing else. So each case runs twice: as it is, with its
own `now` put in place of the one call that reads the clock; and untouched, with its TATs moved to
the server's time and the answer compared with the model at the `now` that the script saw.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from integration.redis_scripts.team import TIER, Team
from integration.redis_scripts.terms import CAPS, charge_of, terms_of

from admission.domain.gcra import Admitted, postflight, preflight
from contracts.admission import Policy
from redis_scripts import RedisScripts, Verdict
from redis_scripts.sources import load

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "spec" / "rate_limit_vectors.json").read_text(encoding="utf-8")
)
CLOCK = "redis.call('TIME')"
LIFE_MS = 3_600_000


def named(op: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in VECTORS if case["op"] == op]


def policy_of(case: dict[str, Any]) -> Policy:
    return Policy(tier_id=TIER, **case["policy"])


async def run_at(
    team: Team, name: str, keys: list[str], now_us: int, arguments: list[int | str]
) -> Any:
    """Run a script's text with a clock that stands at `now_us`."""
    text = load(name).text
    assert text.count(CLOCK) == 1
    seconds, micros = divmod(now_us, 1_000_000)
    clock = f"{{ARGV[{len(arguments) + 1}], ARGV[{len(arguments) + 2}]}}"
    text = text.replace(CLOCK, clock)
    evaluation = team.redis.eval(text, len(keys), *keys, *arguments, seconds, micros)
    return await evaluation


@pytest.mark.parametrize("case", named("preflight"))
async def test_preflight_at_the_time_of_the_case(team: Team, case: dict[str, Any]) -> None:
    await team.put(request_tat_us=case["request_tat_us"], token_tat_us=case["token_tat_us"])
    terms, keys, expect = terms_of(policy_of(case)), team.keys, case["expect"]

    reply = await run_at(
        team,
        "preflight",
        [keys.request_tat, keys.token_tat, keys.tier, keys.balance],
        case["now_us"],
        [
            TIER,
            terms.interval_us,
            terms.request_burst_us,
            terms.token_burst_us,
            LIFE_MS,
            CAPS.request_us,
            CAPS.token_us,
        ],
    )

    assert reply[0] == (b"admitted" if expect["allowed"] else b"limited")
    assert reply[1:4] == [case["now_us"], expect["request_tat_us"], expect["token_tat_us"]]


@pytest.mark.parametrize("case", named("postflight"))
async def test_postflight_at_the_time_of_the_case(team: Team, case: dict[str, Any]) -> None:
    await team.put(request_tat_us=case["request_tat_us"], token_tat_us=case["token_tat_us"])
    charge, keys, expect = charge_of(policy_of(case), case["tokens"]), team.keys, case["expect"]

    reply = await run_at(
        team,
        "postflight",
        [keys.token_tat, keys.request_tat, keys.balance, keys.balance_version],
        case["now_us"],
        [charge.cost_us, 0, LIFE_MS, LIFE_MS, CAPS.token_us, CAPS.request_us],
    )

    assert reply[:3] == [case["now_us"], expect["request_tat_us"], expect["token_tat_us"]]


async def moved_to_the_server(team: Team, case: dict[str, Any]) -> dict[str, int | None]:
    """Set the case's TATs as far from the server's now as they are from the case's."""
    shift_us = await team.now_us() - case["now_us"]
    tats = {
        name: None if case[name] is None else case[name] + shift_us
        for name in ("request_tat_us", "token_tat_us")
    }
    await team.put(request_tat_us=tats["request_tat_us"], token_tat_us=tats["token_tat_us"])
    return tats


@pytest.mark.parametrize("case", named("preflight"))
async def test_preflight_on_the_servers_clock(
    scripts: RedisScripts, team: Team, case: dict[str, Any]
) -> None:
    policy = policy_of(case)
    tats = await moved_to_the_server(team, case)

    reply = await scripts.preflight(team.team_id, terms_of(policy))

    decision = preflight(policy, reply.now_us, tats["request_tat_us"], tats["token_tat_us"])
    assert reply.token_tat_us == tats["token_tat_us"]
    if isinstance(decision, Admitted):
        assert reply.verdict is Verdict.ADMITTED
        assert reply.request_tat_us == decision.request_tat_us
    else:
        assert reply.verdict is Verdict.LIMITED
        assert reply.request_tat_us == tats["request_tat_us"]


@pytest.mark.parametrize("case", named("postflight"))
async def test_postflight_on_the_servers_clock(
    scripts: RedisScripts, team: Team, case: dict[str, Any]
) -> None:
    policy = policy_of(case)
    tats = await moved_to_the_server(team, case)

    reply = await scripts.postflight(team.team_id, charge_of(policy, case["tokens"]))

    expected_us = postflight(policy, reply.now_us, tats["token_tat_us"], case["tokens"])
    assert reply.token_tat_us == expected_us
    assert reply.request_tat_us == tats["request_tat_us"]
