"""Changes: one transaction each, carried out once per idempotency key, and then the relay is woken.

An error changes nothing and is not kept: the same key may try again.
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Header, Request
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import Response

from control_plane.domain.errors import InvalidError
from control_plane.handlers.services import Services, services
from control_plane.store import idempotency
from kit.crashpoint import crash_at

REPLAY_HEADER = "x-quotagate-idempotent-replay"
_KEY = re.compile(r"[!-~]{1,255}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Done:
    """What a change is answered, and what a repeat with its idempotency key is."""

    body: BaseModel
    on_repeat: BaseModel | None = None
    """None: the same. Otherwise the body less what may be shown only once."""
    status: HTTPStatus = HTTPStatus.CREATED


Work = Callable[[AsyncSession], Awaitable[Done]]


@dataclass(frozen=True, slots=True)
class Writes:
    """Carries out the change of one request."""

    services: Services
    request: Request
    idempotency_key: str | None

    async def run(self, work: Work) -> Response:
        """Do the work and commit it; or, for a known idempotency key, tell the first answer."""
        claim = await self._claim()
        async with self.services.database.changing() as session:
            if claim is not None:
                first = await idempotency.claim(session, claim)
                if first is not None:
                    return _json(first.body, first.status, {REPLAY_HEADER: "true"})
            done = await work(session)
            if claim is not None:
                kept = _encode(done.body if done.on_repeat is None else done.on_repeat)
                await idempotency.remember(session, claim, idempotency.Answer(done.status, kept))
            crash_at("control_plane.changed")
        crash_at("control_plane.committed")
        self.services.wake_relay()
        return _json(_encode(done.body), done.status)

    async def _claim(self) -> idempotency.Request | None:
        if self.idempotency_key is None:
            return None
        if not _KEY.fullmatch(self.idempotency_key):
            raise InvalidError(
                "Idempotency-Key: must be 1 to 255 printable ASCII characters.",
                field="Idempotency-Key",
            )
        # Two ways to write the same JSON are the same request; another team's path is not.
        body = json.dumps(json.loads(await self.request.body()), sort_keys=True)
        hashed = hashlib.sha256(f"{self.request.scope['path']}\n{body}".encode())
        route = f"{self.request.method} {self.request.scope['route'].path}"
        return idempotency.Request(self.idempotency_key, route, hashed.digest())


def _encode(body: BaseModel) -> bytes:
    return body.model_dump_json().encode()


def _json(body: bytes, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, media_type="application/json")


def _change(request: Request, known: Annotated[Services, Depends(services)]) -> Writes:
    return Writes(known, request, None)


def _creation(
    request: Request,
    known: Annotated[Services, Depends(services)],
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="Makes a repeat of this request, with the same body, return the answer of"
            f" the first one, marked by the header `{REPLAY_HEADER}`.",
        ),
    ] = None,
) -> Writes:
    return Writes(known, request, idempotency_key)


Change = Annotated[Writes, Depends(_change)]
"""A change that may be repeated as it is."""
Creation = Annotated[Writes, Depends(_creation)]
"""A change that an `Idempotency-Key` makes repeatable."""
