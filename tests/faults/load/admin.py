"""The admin API as an operator in a storm uses it: each change under an idempotency key."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
from faults.evidence import Certainty

from kit.ids import new_id
from quotagate.stack import Stack

_TRIES = 12
_PAUSE_S = 0.4
_FIRST_SERVER_ERROR = 500
_FIRST_ERROR = 400


class AdminError(Exception):
    """What had to be done could not be done."""


class Admin:
    """Calls the control plane, past all wires."""

    def __init__(self, stack: Stack) -> None:
        self._http = httpx.AsyncClient(
            base_url=f"{stack.url('control-plane')}/admin/v1",
            headers={"authorization": f"Bearer {stack.state.credentials.admin_token}"},
            timeout=5,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def must(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        """Do something that has to succeed, and return the answer.

        Raises:
            AdminError: it didn't.

        """
        certainty, answer = await self.do(method, path, body)
        if certainty is not Certainty.DONE:
            raise AdminError(f"{method} {path}: {certainty}: {answer}")
        return answer

    async def do(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[Certainty, Any]:
        """Do something, asking again under the same idempotency key as long as nobody can tell."""
        headers = {"idempotency-key": new_id()}
        doubt = False
        for tries in range(_TRIES):
            if tries:
                await asyncio.sleep(_PAUSE_S)
            try:
                answer = await self._http.request(method, path, json=body, headers=headers)
            except httpx.ConnectError:
                continue  # nothing was sent
            except httpx.HTTPError:
                doubt = True
                continue
            if answer.status_code >= _FIRST_SERVER_ERROR:
                doubt = True
                continue
            if answer.status_code >= _FIRST_ERROR:
                return Certainty.NOT_DONE, answer.text
            return Certainty.DONE, answer.json()
        return Certainty.UNKNOWN if doubt else Certainty.NOT_DONE, None
