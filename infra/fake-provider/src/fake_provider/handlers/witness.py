"""What tests ask the provider about itself. No authentication: it says nothing a test didn't send.

`GET /_fake/requests` and `/_fake/counts` take `marker`, `path` and `outcome` as filters. With
`at_least` they answer once so many requests match, at the latest after `wait_ms` (default ten
seconds), and with 504 if there were fewer: a test waits for an event, not for a while.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from fake_provider.handlers.inference import Provider
from fake_provider.journal import Filter, Journal

_LATEST = 1_000
_WAIT_MS = 10_000
_PAUSE_S = 0.005
"""Under load every request is a change, and counting after each would be all that we do."""


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of a request."""

    marker: str = ""
    path: str = ""
    outcome: str = ""
    limit: int = _LATEST
    at_least: int = 0
    wait_ms: int = _WAIT_MS

    @property
    def filter(self) -> Filter:
        """What is asked for."""
        return Filter(self.marker, self.path, self.outcome)


def witness_routes(provider: Provider) -> list[BaseRoute]:
    """Return the routes under `/_fake`."""
    journal = provider.journal

    async def requests(request: Request) -> Response:
        question = _question(request.query_params)
        status = await _matching(journal, question)
        return _json({"requests": journal.find(question.filter, question.limit)}, status)

    async def counts(request: Request) -> Response:
        question = _question(request.query_params)
        status = await _matching(journal, question)
        return _json(journal.counts(question.filter), status)

    async def forget(_request: Request) -> Response:
        provider.forget()
        return Response(status_code=204)

    async def open_gate(request: Request) -> Response:
        provider.gates.open(request.path_params["name"])
        return Response(status_code=204)

    return [
        Route("/_fake/requests", requests, methods=["GET"]),
        Route("/_fake/requests", forget, methods=["DELETE"]),
        Route("/_fake/counts", counts, methods=["GET"]),
        Route("/_fake/gates/{name}", open_gate, methods=["POST"]),
    ]


def _question(query: Mapping[str, str]) -> Question:
    try:
        return msgspec.convert(dict(query), Question, strict=False)
    except msgspec.ValidationError as error:
        raise HTTPException(400, str(error)) from None


async def _matching(journal: Journal, question: Question) -> int:
    """Wait until enough requests match; return the status to answer with."""
    if not question.at_least:
        return 200
    try:
        async with asyncio.timeout(question.wait_ms / 1000):
            while question.at_least > journal.counts(question.filter)["requests"]:
                await journal.change()
                await asyncio.sleep(_PAUSE_S)
    except TimeoutError:
        return 504
    return 200


def _json(content: dict[str, Any], status: int) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")
