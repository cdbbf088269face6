"""`/teams`: who is limited and who pays."""

from datetime import datetime
from http import HTTPStatus

from fastapi import APIRouter
from pydantic import Field
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import Response

from contracts.control import TIER_CHANGED, TierChanged
from control_plane import store
from control_plane.domain.changes import change
from control_plane.domain.instants import unix_us
from control_plane.handlers import examples
from control_plane.handlers.examples import shown
from control_plane.handlers.fields import Asked, Id, Name, Told
from control_plane.handlers.openapi import EVENT_ID, conflict, not_found
from control_plane.handlers.pages import Listing, Page, PageQuery
from control_plane.handlers.services import Known
from control_plane.handlers.writes import Change, Creation, Done
from control_plane.store.database import now
from kit.ids import new_id
from tables import Team as TeamRow

router = APIRouter(prefix="/admin/v1", tags=["teams"])


class NewTeam(Asked):
    """A team to create; its account opens with it, empty."""

    model_config = shown(examples.NEW_TEAM)

    team_id: Id = Field(
        default_factory=new_id, description="Chosen for you when absent. It can't be changed."
    )
    name: Name | None = Field(default=None, description="For people; absent: the id.")
    tier_id: Id = Field(description="The first tier, which must exist.", examples=["tier_1"])


class TierChoice(Asked):
    """The tier a team shall have."""

    model_config = shown({"tier_id": "tier_2"})

    tier_id: Id = Field(examples=["tier_2"])


class Team(Told):
    """A team."""

    model_config = shown(examples.TEAM)

    team_id: str
    name: str
    tier_id: str
    tier_version: int = Field(description="Raised by one with each change of the tier.")
    created_at: datetime


class ChangedTeam(Team):
    """A team after its tier was set."""

    model_config = shown(examples.CHANGED_TEAM)

    event_id: str | None = EVENT_ID


_LISTING: Listing[TeamRow] = Listing("teams", (str,), lambda row: (row.team_id,))


def _tell(row: TeamRow) -> Team:
    return Team.model_validate(row, from_attributes=True)


@router.post("/teams", status_code=201, response_model=Team, responses=conflict("team"))
async def create_team(new: NewTeam, creation: Creation) -> Response:
    """Create a team and its account."""

    async def work(session: AsyncSession) -> Done:
        name = new.team_id if new.name is None else new.name
        return Done(_tell(await store.teams.create(session, new.team_id, name, new.tier_id)))

    return await creation.run(work)


@router.get("/teams")
async def list_teams(known: Known, page: PageQuery) -> Page[Team]:
    """List teams by id."""
    after = _LISTING.after(page)
    async with known.database.reading() as session:
        rows = await store.teams.page(session, after, page.limit + 1)
    return _LISTING.page(page, rows, _tell)


@router.get("/teams/{team_id}", responses=not_found("team"))
async def get_team(team_id: Id, known: Known) -> Team:
    """Return one team."""
    async with known.database.reading() as session:
        return _tell(await store.teams.get(session, team_id))


@router.put("/teams/{team_id}/tier", response_model=ChangedTeam, responses=not_found("team"))
async def set_tier(team_id: Id, choice: TierChoice, writes: Change) -> Response:
    """Give a team a tier. Its debts stay; a call in flight keeps the policy it began with."""

    async def work(session: AsyncSession) -> Done:
        row, changed = await store.teams.set_tier(session, team_id, choice.tier_id)
        event_id = None
        if changed:
            message = TierChanged(
                team_id=team_id,
                tier_id=row.tier_id,
                version=row.tier_version,
                changed_at_us=unix_us(await now(session)),
            )
            event_id = await store.outbox.append(session, change(TIER_CHANGED, message, team_id))
        body = ChangedTeam(**_tell(row).model_dump(), event_id=event_id)
        return Done(body, status=HTTPStatus.OK)

    return await writes.run(work)
