"""An endpoint's windows from the outside: in preflight, alone, by key and by address."""

import asyncio
import uuid
from typing import Any

import pytest
from integration.admission.edge import Edge
from integration.bus import refused_with
from integration.desk import Desk
from msgspec.structs import replace

from contracts.admission import Decision, LimitReason, LimitScope
from contracts.errors import ErrorCode
from contracts.windows import Window

FAST = {"rpm": 60_000_000, "tpm": 10**9}
MINUTE_US = 60_000_000
MINUTE = Window(group="Chat", label="Minute", limit=3, length_us=MINUTE_US)
DAY = Window(group="Chat", label="Day", limit=1_000, length_us=86_400_000_000)


def new_address() -> str:
    return f"2001:db8:0:{uuid.uuid4().int % 65_536:x}::/64"


async def test_preflight_says_which_window_refuses_and_for_how_long(edge: Edge, desk: Desk) -> None:
    team_id = await desk.open_team(await desk.open_tier(**FAST), balance_usd="5")
    for used in (1, 2, 3):
        reply = await edge.preflight(team_id, windows=(MINUTE, DAY))
        assert reply.decision is Decision.ALLOWED
        assert [use.used for use in reply.windows] == [used, used]
    reply = await edge.preflight(team_id, windows=(MINUTE, DAY))
    assert reply.decision is Decision.RATE_LIMITED
    assert reply.reason == "endpoint"
    assert reply.refusal is not None
    assert (reply.refusal.scope, reply.refusal.limit) == (LimitScope.KEY, 3)
    assert (reply.refusal.used, reply.refusal.window) == (3, "Chat-Minute")
    assert 0 < reply.retry_after_us <= MINUTE_US
    assert [use.used for use in reply.windows] == [3, 3]


async def test_of_a_window_and_the_tier_the_longest_wait_is_told(edge: Edge, desk: Desk) -> None:
    team_id = await desk.open_team(await desk.open_tier(rpm=1, tpm=10**9), balance_usd="5")
    quick, slow = (replace(MINUTE, limit=1, length_us=us) for us in (1_000_000, 10 * MINUTE_US))
    first = await edge.preflight(team_id, windows=(slow,))
    assert first.decision is Decision.ALLOWED
    by_window = await edge.preflight(team_id, windows=(slow,))
    assert by_window.reason == "endpoint"
    by_tier = await edge.preflight(team_id, windows=(quick,))
    assert by_tier.reason == "requests"
    assert by_tier.windows


async def test_in_shadow_mode_a_preflight_only_tells(edge: Edge, desk: Desk) -> None:
    team_id = await desk.open_team(await desk.open_tier(**FAST), balance_usd="5")
    shadow = replace(MINUTE, limit=1, shadow=True)
    replies = [await edge.preflight(team_id, windows=(shadow,)) for _ in range(2)]
    assert [reply.decision for reply in replies] == [Decision.ALLOWED] * 2
    assert [reply.shadowed for reply in replies] == [(), (LimitReason.ENDPOINT,)]


async def test_a_further_attempt_asks_no_window(edge: Edge, desk: Desk) -> None:
    team_id = await desk.open_team(await desk.open_tier(**FAST), balance_usd="5")
    one = replace(MINUTE, limit=1)
    assert (await edge.preflight(team_id, windows=(one,))).decision is Decision.ALLOWED
    again = await edge.preflight(team_id, windows=(one,), further=True)
    assert (again.decision, again.windows) == (Decision.ALLOWED, ())


async def test_a_key_has_the_same_windows_with_and_without_a_preflight(
    edge: Edge, desk: Desk
) -> None:
    team_id = await desk.open_team(await desk.open_tier(**FAST), balance_usd="5")
    await edge.preflight(team_id, windows=(MINUTE,))
    reply = await edge.judge(MINUTE, team_id=team_id, key_id="key")
    assert (reply.uses[0].used, reply.refusal) == (2, None)
    other = await edge.judge(MINUTE, team_id=team_id, key_id="another")
    assert other.uses[0].used == 1


async def test_an_address_waits_until_its_oldest_request_leaves(edge: Edge) -> None:
    address = new_address()
    replies = await asyncio.gather(*(edge.judge(MINUTE, address=address) for _ in range(10)))
    refused = [reply for reply in replies if reply.refusal is not None]
    assert len(refused) == 7
    for reply in refused:
        assert reply.refusal is not None
        assert (reply.refusal.scope, reply.refusal.reason) == ("address", "endpoint")
        assert 0 < reply.retry_after_us <= MINUTE_US
    assert (await edge.judge(MINUTE, address=new_address())).refusal is None


@pytest.mark.parametrize(
    "whose",
    [
        pytest.param({}, id="nobody's"),
        pytest.param({"team_id": "team"}, id="a team's without a key"),
        pytest.param({"address": "10.0.0.1}{"}, id="no address"),
    ],
)
async def test_who_asks_must_be_said(edge: Edge, whose: dict[str, Any]) -> None:
    with refused_with(ErrorCode.INVALID_MESSAGE):
        await edge.judge(MINUTE, **whose)


async def test_without_windows_there_is_nothing_to_judge(edge: Edge) -> None:
    with refused_with(ErrorCode.INVALID_MESSAGE):
        await edge.judge(address=new_address())
