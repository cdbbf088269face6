"""The admin API as an operator uses it, and the teams that the tests open with it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import httpx
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from kit.ids import new_id
from quotagate.stack import Stack

MODEL = "gpt-4o-mini"
PROVIDER = "fake"
# A record that a killed settlement had taken is delivered again when its `ack_wait_s` is over.
_SETTLES_WITHIN_S = 45


@dataclass(frozen=True, slots=True)
class Customer:
    """A team with a key, and how its applications reach the edge."""

    team_id: str
    key_id: str
    key: str
    edge_url: str

    def openai(self, **options: Any) -> AsyncOpenAI:
        """Return an unmodified client; it retries only where a test says so."""
        return AsyncOpenAI(
            api_key=self.key, base_url=f"{self.edge_url}/v1", **({"max_retries": 0} | options)
        )

    def anthropic(self, **options: Any) -> AsyncAnthropic:
        """Return an unmodified client; it retries only where a test says so."""
        return AsyncAnthropic(
            api_key=self.key, base_url=self.edge_url, **({"max_retries": 0} | options)
        )


class Operator:
    """Calls the control plane with the admin token."""

    def __init__(self, stack: Stack) -> None:
        self._edge_url = stack.url("edge-proxy")
        self._http = httpx.AsyncClient(
            base_url=f"{stack.url('control-plane')}/admin/v1",
            headers={"authorization": f"Bearer {stack.state.credentials.admin_token}"},
            timeout=10,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, path: str, **query: Any) -> Any:
        response = await self._http.get(path, params=query)
        assert response.is_success, response.text
        return response.json()

    async def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        response = await self._http.request(method, path, json=body)
        assert response.is_success, response.text
        return response.json() if response.content else None

    async def open_tier(self, *, rpm: int = 30_000, tpm: int = 10_000_000, **more: Any) -> str:
        tier_id = f"tier-{new_id()}"
        await self.send("PUT", f"/tiers/{tier_id}", {"rpm": rpm, "tpm": tpm, **more})
        return tier_id

    async def open_team(
        self, tier_id: str | None = None, credit_usd: str | None = "10", **key: Any
    ) -> Customer:
        """Open a team with one key; by default its limits are out of the way."""
        team_id = f"team-{new_id()}"
        tier_id = tier_id or await self.open_tier()
        await self.send("POST", "/teams", {"team_id": team_id, "tier_id": tier_id})
        if credit_usd is not None:
            await self.credit(team_id, credit_usd)
        made = await self.send("POST", f"/teams/{team_id}/keys", {"name": "tests", **key})
        return Customer(team_id, made["key_id"], made["key"], self._edge_url)

    async def credit(self, team_id: str, amount_usd: str) -> Any:
        return await self.send(
            "POST", f"/teams/{team_id}/credits", {"amount": amount_usd, "reason": "tests"}
        )

    async def price(self, model: str = MODEL, provider: str = PROVIDER) -> dict[str, Decimal]:
        """Return the price in effect, USD per million tokens by class."""
        prices = await self.get("/prices", provider=provider, model=model)
        return {name: Decimal(usd) for name, usd in prices["items"][0]["usd_per_million"].items()}

    async def records(self, team_id: str) -> list[dict[str, Any]]:
        """Return the team's records, oldest first."""
        page = await self.get(f"/teams/{team_id}/records", limit=200)
        return sorted(page["items"], key=lambda record: str(record["inference_id"]))

    async def eventually(
        self, team_id: str, done: Callable[[list[dict[str, Any]]], bool]
    ) -> list[dict[str, Any]]:
        """Return the team's records once they are as the caller waits for them."""
        records: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(_SETTLES_WITHIN_S):
                while not done(records := await self.records(team_id)):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"records after {_SETTLES_WITHIN_S} s: {records}") from None
        return records

    async def cached_balance_becomes(self, team_id: str, balance_usd: Decimal) -> None:
        """Return once the cache says this too; settlement refreshes it after its commit."""
        async with asyncio.timeout(_SETTLES_WITHIN_S):
            while True:
                cached = (await self.get(f"/teams/{team_id}/account"))["cached"]
                if cached is not None and Decimal(cached["balance"]) == balance_usd:
                    return
                await asyncio.sleep(0.05)

    async def settled(self, team_id: str, count: int = 1) -> list[dict[str, Any]]:
        """Return the team's records once there are so many and none is pending."""
        return await self.eventually(
            team_id,
            lambda records: (
                len(records) == count and all(record["state"] != "PENDING" for record in records)
            ),
        )
