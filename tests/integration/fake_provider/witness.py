"""Asks the fake provider what it has seen: the reader's side of its `/_fake` routes."""

from typing import Any

import httpx

Seen = dict[str, Any]
"""One request as the journal tells it; the fields are those of fake_provider.journal.Entry."""


class Witness:
    """Filters are `marker`, `path` and `outcome`."""

    def __init__(self, base_url: str) -> None:
        self._client = httpx.AsyncClient(base_url=base_url, timeout=30)

    async def requests(self, at_least: int = 0, **wanted: str) -> list[Seen]:
        """Return what was seen, oldest first, once it is at least so much."""
        answer = await self._ask("/_fake/requests", at_least, wanted)
        found: list[Seen] = answer["requests"]
        return found

    async def one(self, **wanted: str) -> Seen:
        """Wait for the one request that is meant, and return it."""
        found = await self.requests(1, **wanted)
        assert len(found) == 1, found
        return found[0]

    async def counts(self, at_least: int = 0, **wanted: str) -> Seen:
        """Return how much was seen: `requests`, `by_outcome`, `by_status`, `tokens`."""
        return await self._ask("/_fake/counts", at_least, wanted)

    async def open_gate(self, name: str) -> None:
        """Let the requests pass that wait at this gate."""
        (await self._client.post(f"/_fake/gates/{name}")).raise_for_status()

    async def forget(self) -> None:
        """Have it forget everything."""
        (await self._client.delete("/_fake/requests")).raise_for_status()

    async def close(self) -> None:
        await self._client.aclose()

    async def _ask(self, path: str, at_least: int, wanted: dict[str, str]) -> Seen:
        answer = await self._client.get(path, params={"at_least": at_least, **wanted})
        assert answer.status_code == httpx.codes.OK, answer.text
        seen: Seen = answer.json()
        return seen
