"""A key's secret is exchanged while its clients call."""

import asyncio
from dataclasses import replace

import httpx
from e2e.operator import MODEL, Customer, Operator

from fake_provider.behaviour import fake
from quotagate.stack import Stack

# Slow enough that a debt would be seen to be forgotten.
TIER = {"rpm": 60_000_000, "tpm": 60}


async def ask(stack: Stack, team: Customer, tokens: int) -> httpx.Response:
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Hello."}],
        "metadata": fake(prompt_tokens=tokens, completion_tokens=0),
    }
    async with httpx.AsyncClient(base_url=stack.url("edge-proxy"), timeout=60) as client:
        headers = {"authorization": f"Bearer {team.key}"}
        return await client.post("/v1/chat/completions", json=body, headers=headers)


async def status_within_a_second(stack: Stack, team: Customer, status: int) -> None:
    """Return once the edge answers with the status; it has a second to hear of a change."""
    async with asyncio.timeout(30):  # a busy machine's second
        while (await ask(stack, team, 0)).status_code != status:
            await asyncio.sleep(0.05)


async def test_both_secrets_are_good_for_the_overlap_and_nothing_else_changes(
    stack: Stack, operator: Operator
) -> None:
    team = await operator.open_team(await operator.open_tier(**TIER))
    assert (await ask(stack, team, 600)).status_code == 200
    path = f"/keys/{team.key_id}/rotate"
    rotated = await operator.send("POST", path, {"overlap_s": 3600})
    new = replace(team, key=rotated["key"])
    await status_within_a_second(stack, new, 429)
    # Ten minutes of debt are still there, for either secret.
    assert (await ask(stack, team, 0)).status_code == 429
    assert (await operator.get(f"/teams/{team.team_id}/ledger"))["items"]

    again = await operator.send("POST", path, {"overlap_s": 0})
    await status_within_a_second(stack, new, 401)
    await status_within_a_second(stack, replace(team, key=again["key"]), 429)
    assert (await ask(stack, team, 0)).status_code == 401
