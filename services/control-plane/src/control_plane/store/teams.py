"""Teams and the tier each has."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from control_plane.domain.cursors import Key
from control_plane.domain.errors import ConflictError, InvalidError, team_not_found
from tables import Team, Tier


async def create(session: AsyncSession, team_id: str, name: str, tier_id: str) -> Team:
    """Add a team; the database opens its account.

    Raises:
        ConflictError: there is such a team. InvalidError: there is no such tier.

    """
    await _check_tier(session, tier_id)
    statement = (
        insert(Team)
        .values(team_id=team_id, name=name, tier_id=tier_id)
        .on_conflict_do_nothing()
        .returning(Team)
    )
    team = (await session.scalars(statement)).one_or_none()
    if team is None:
        raise ConflictError(
            f"There is a team {team_id} already.", code="team_exists", field="team_id"
        )
    return team


async def get(session: AsyncSession, team_id: str) -> Team:
    """Return a team. Raises NotFoundError where there is none."""
    team = (await session.scalars(select(Team).where(_is(team_id)))).one_or_none()
    if team is None:
        raise team_not_found(team_id)
    return team


async def page(session: AsyncSession, after: Key | None, limit: int) -> Sequence[Team]:
    """Return teams by (id), those after that sort key."""
    statement = select(Team).where(col(Team.deleted_at).is_(None))
    if after is not None:
        statement = statement.where(tuple_(col(Team.team_id)) > after)
    return (await session.scalars(statement.order_by(col(Team.team_id)).limit(limit))).all()


async def set_tier(session: AsyncSession, team_id: str, tier_id: str) -> tuple[Team, bool]:
    """Give a team a tier; return it, and whether that changed anything.

    Raises:
        NotFoundError: there is no such team. InvalidError: there is no such tier.

    """
    await _check_tier(session, tier_id)
    locked = select(Team).where(_is(team_id)).with_for_update(key_share=True)
    team = (await session.scalars(locked)).one_or_none()
    if team is None:
        raise team_not_found(team_id)
    if team.tier_id == tier_id:
        return team, False
    statement = update(Team).where(_is(team_id)).values(tier_id=tier_id).returning(Team)
    changed = await session.scalars(statement, execution_options={"populate_existing": True})
    return changed.one(), True


def _is(team_id: str) -> ColumnElement[bool]:
    return and_(col(Team.team_id) == team_id, col(Team.deleted_at).is_(None))


async def _check_tier(session: AsyncSession, tier_id: str) -> None:
    # Tiers are never removed, so what is there now is there at the commit.
    if await session.get(Tier, tier_id) is None:
        raise InvalidError(
            f"tier_id: there is no tier {tier_id}.", code="tier_not_found", field="tier_id"
        )
