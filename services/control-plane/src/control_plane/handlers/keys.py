"""`/teams/{id}/keys` and `/keys/{id}`: API keys, whose text is shown once."""

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter
from pydantic import Field, field_validator
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import Response

from contracts.control import KEY_CHANGED, KEY_REVOKED, KeyChanged, KeyRevoked
from contracts.limits import KeyLimits as OwnLimits
from control_plane import store
from control_plane.domain.changes import change
from control_plane.domain.errors import InvalidError
from control_plane.domain.instants import unix_us
from control_plane.domain.rates import check_key_limits, key_problem
from control_plane.handlers import examples
from control_plane.handlers.examples import shown
from control_plane.handlers.fields import Asked, AskedInstant, Id, Model, Name, Told
from control_plane.handlers.limit_fields import KeyLimits, key_limits_as_stored
from control_plane.handlers.openapi import EVENT_ID, REVOKED, conflict, not_found
from control_plane.handlers.pages import Listing, Page, PageQuery
from control_plane.handlers.services import Known
from control_plane.handlers.stored import PROBLEM, as_told
from control_plane.handlers.writes import Change, Creation, Done
from control_plane.store.database import now
from control_plane.store.keys import KeyRow
from kit import keys
from tables import ApiKey

router = APIRouter(prefix="/admin/v1", tags=["keys"])


_DAY_S = 24 * 3600

AllowedModels = Annotated[list[Model], Field(min_length=1, max_length=200)]


class NewKey(Asked):
    """A key to create."""

    model_config = shown(examples.NEW_KEY)

    name: Name = Field(default="unnamed", description="For people.")
    expires_at: AskedInstant | None = Field(
        default=None, description="From then on the key is refused; absent: never."
    )
    allowed_models: AllowedModels | None = Field(
        default=None, description="The models it may use; absent: every model."
    )
    limits: KeyLimits | None = Field(
        default=None, description="Limits of its own; absent: those its tier gives every key."
    )


class KeyChange(Asked):
    """What of a key is to be another; what is left out stays."""

    model_config = shown(examples.KEY_CHANGE)

    name: Name = Field(default="", description="For people.")
    expires_at: AskedInstant | None = Field(default=None, description="Null: never.")
    allowed_models: AllowedModels | None = Field(default=None, description="Null: every model.")
    limits: KeyLimits | None = Field(
        default=None, description="All of its own limits; null: it has none."
    )


class Key(Told):
    """A key without its secret, which nobody has but its holder."""

    model_config = shown(examples.KEY)

    key_id: str = Field(description="The public part, which names the key.")
    team_id: str
    name: str
    allowed_models: list[str] | None = Field(description="Null: every model.")
    limits: KeyLimits | None = Field(
        default=None, description="Null: those its tier gives every key."
    )
    problem: str | None = PROBLEM
    created_at: datetime
    expires_at: datetime | None = Field(description="Null: never.")
    revoked_at: datetime | None = Field(description="Null: it is valid.")
    old_secret_until: datetime | None = Field(
        description="Until then the secret before the last rotation is good too; null: there is"
        " none."
    )

    @field_validator("limits", mode="before")
    @classmethod
    def _none_of_its_own(cls, stored: object) -> object:
        # As stored, a key without limits has an empty object.
        return None if stored == {} else stored


class CreatedKey(Key):
    """A key with its text, at the only moment it can be told."""

    model_config = shown(examples.CREATED_KEY)

    key: str | None = Field(
        description="What the holder sends. Shown this once; null when an idempotency key repeats"
        " the request."
    )


class Rotation(Asked):
    """How a key's secret is replaced."""

    model_config = shown(examples.ROTATION)

    overlap_s: int = Field(
        default=_DAY_S,
        strict=True,
        ge=0,
        le=90 * _DAY_S,
        description="For so many seconds the old secret is good too; 0: it ends now, which a"
        " disclosed one should.",
    )


class RotatedKey(CreatedKey):
    """A key with its new text, at the only moment it can be told."""

    model_config = shown(examples.ROTATED_KEY)

    event_id: str = EVENT_ID


class ChangedKey(Key):
    """A key after it was changed."""

    model_config = shown(examples.CHANGED_KEY)

    event_id: str | None = EVENT_ID


class RevokedKey(Key):
    """A key that isn't accepted any more."""

    model_config = shown(examples.REVOKED_KEY)

    event_id: str | None = EVENT_ID


_LISTING: Listing[ApiKey] = Listing(
    "keys", (datetime, str), lambda row: (row.created_at, row.key_id)
)


def _tell(row: ApiKey) -> Key:
    return as_told(Key, row.model_dump(include=set(Key.model_fields)), key_problem(row.limits))


@router.post(
    "/teams/{team_id}/keys",
    status_code=201,
    response_model=CreatedKey,
    responses=not_found("team") | conflict("key"),
)
async def create_key(team_id: Id, new: NewKey, known: Known, creation: Creation) -> Response:
    """Create a key and show its text, this once."""
    limits = _limits(new.limits)

    async def work(session: AsyncSession) -> Done:
        await store.teams.get(session, team_id)
        await _check_expiry(session, new.expires_at)
        made = keys.new_key(known.key_pepper)
        row = KeyRow(
            key_id=made.key_id,
            team_id=team_id,
            name=new.name,
            secret_hash=bytes.fromhex(made.secret_hash),
            allowed_models=new.allowed_models,
            limits=limits,
            expires_at=new.expires_at,
        )
        told = _tell(await store.keys.create(session, row)).model_dump()
        return Done(CreatedKey(**told, key=made.text), on_repeat=CreatedKey(**told, key=None))

    return await creation.run(work)


def _limits(asked: KeyLimits | None) -> dict[str, Any]:
    """Return a key's own limits as they are stored, once they are seen to be possible."""
    stored = key_limits_as_stored(asked)
    if asked is not None:
        check_key_limits(msgspec.convert(stored, OwnLimits))
    return stored


async def _check_expiry(session: AsyncSession, expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= await now(session):
        raise InvalidError("expires_at: must be in the future", field="expires_at")


@router.get("/teams/{team_id}/keys", responses=not_found("team"))
async def list_keys(team_id: Id, known: Known, page: PageQuery) -> Page[Key]:
    """List a team's keys, the oldest first, revoked and expired ones too."""
    after = _LISTING.after(page)
    async with known.database.reading() as session:
        await store.teams.get(session, team_id)
        rows = await store.keys.page(session, team_id, after, page.limit + 1)
    return _LISTING.page(page, rows, _tell)


@router.patch("/keys/{key_id}", response_model=ChangedKey, responses=not_found("key") | REVOKED)
async def change_key(key_id: Id, asked: KeyChange, writes: Change) -> Response:
    """Change what is given of a key: every edge and every decision follows within a second.

    A revoked key can't be changed. Debts stay, in time.
    """
    values = {name: getattr(asked, name) for name in asked.model_fields_set}
    if "limits" in values:
        values["limits"] = _limits(asked.limits)

    async def work(session: AsyncSession) -> Done:
        await _check_expiry(session, values.get("expires_at"))
        row, changed = await store.keys.change(session, key_id, values)
        event_id = await _announce(session, row) if changed else None
        return Done(ChangedKey(**_tell(row).model_dump(), event_id=event_id), status=HTTPStatus.OK)

    return await writes.run(work)


@router.post(
    "/keys/{key_id}/rotate", response_model=RotatedKey, responses=not_found("key") | REVOKED
)
async def rotate_key(key_id: Id, asked: Rotation, known: Known, creation: Creation) -> Response:
    """Give a key another secret and show it, this once.

    Key id, limits, balance and what was used stay. The secret before the last one ends now, the
    last one when the overlap is over; every edge follows within a second.
    """

    async def work(session: AsyncSession) -> Done:
        made = keys.new_secret(key_id, known.key_pepper)
        row = await store.keys.rotate(
            session, key_id, bytes.fromhex(made.secret_hash), timedelta(seconds=asked.overlap_s)
        )
        told = _tell(row).model_dump() | {"event_id": await _announce(session, row)}
        return Done(
            RotatedKey(**told, key=made.text),
            on_repeat=RotatedKey(**told, key=None),
            status=HTTPStatus.OK,
        )

    return await creation.run(work)


async def _announce(session: AsyncSession, row: ApiKey) -> str:
    """Have every edge ask anew about a key; return the event."""
    message = KeyChanged(
        key_id=row.key_id, team_id=row.team_id, changed_at_us=unix_us(await now(session))
    )
    return await store.outbox.append(session, change(KEY_CHANGED, message, row.key_id))


@router.delete("/keys/{key_id}", response_model=RevokedKey, responses=not_found("key"))
async def revoke_key(key_id: Id, writes: Change) -> Response:
    """Revoke a key: every edge refuses it within a second. It can't be undone."""

    async def work(session: AsyncSession) -> Done:
        row, revoked = await store.keys.revoke(session, key_id)
        event_id = None
        if revoked:
            message = KeyRevoked(
                key_id=key_id, team_id=row.team_id, changed_at_us=unix_us(await now(session))
            )
            event_id = await store.outbox.append(session, change(KEY_REVOKED, message, key_id))
        body = RevokedKey(**_tell(row).model_dump(), event_id=event_id)
        return Done(body, status=HTTPStatus.OK)

    return await writes.run(work)
