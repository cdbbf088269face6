"""The answers to requests with an idempotency key, kept in the transaction of the request."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from control_plane.domain.errors import KeyInUseError, KeyReusedError
from tables import AdminIdempotency

_LOCK_NOT_AVAILABLE = "55P03"


@dataclass(frozen=True, slots=True)
class Request:
    """What makes two requests the same: key, route and the hash of everything else."""

    key: str
    route: str
    request_hash: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered: HTTP status and body."""

    status: int
    body: bytes


async def claim(session: AsyncSession, request: Request) -> Answer | None:
    """Return the answer to the first such request; None: this is it, remember its answer.

    Waits, not for long, while another transaction carries out the first request.

    Raises:
        KeyReusedError: the key belongs to another request.
        KeyInUseError: the first request is still running.

    """
    statement = (
        insert(AdminIdempotency)
        .values(key=request.key, route=request.route, request_hash=request.request_hash)
        .on_conflict_do_nothing()
        .returning(col(AdminIdempotency.key))
    )
    try:
        claimed = (await session.execute(statement)).first()
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
            raise KeyInUseError from error
        raise
    if claimed is not None:
        return None
    first = (await session.scalars(select(AdminIdempotency).where(*_is(request)))).one()
    if first.request_hash != request.request_hash:
        raise KeyReusedError(field="Idempotency-Key")
    if first.status is None or first.response is None:
        raise KeyInUseError
    return Answer(first.status, first.response)


async def remember(session: AsyncSession, request: Request, answer: Answer) -> None:
    """Keep the answer of a claimed request."""
    await session.execute(
        update(AdminIdempotency)
        .where(*_is(request))
        .values(status=answer.status, response=answer.body)
    )


async def forget(session: AsyncSession, older_than: timedelta) -> None:
    """Remove answers that nobody will ask for again."""
    await session.execute(
        delete(AdminIdempotency).where(col(AdminIdempotency.created_at) < func.now() - older_than)
    )


def _is(request: Request) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return (
        col(AdminIdempotency.key) == request.key,
        col(AdminIdempotency.route) == request.route,
    )
