"""`/teams/{id}/limits`: what Redis holds of a team, as admission reads it."""

from fastapi import APIRouter
from pydantic import Field

from control_plane import store
from control_plane.handlers import examples
from control_plane.handlers.examples import shown
from control_plane.handlers.fields import Id, Told
from control_plane.handlers.openapi import not_found
from control_plane.handlers.services import Known

router = APIRouter(prefix="/admin/v1/teams/{team_id}", tags=["limits"])


class LimitState(Told):
    """Both limits as a request would meet them now."""

    limit_requests: int = Field(description="RPM.")
    remaining_requests: int = Field(description="Requests that would be admitted at once.")
    reset_requests_us: int = Field(description="Microseconds until the request debt is paid off.")
    limit_tokens: int = Field(description="TPM.")
    remaining_tokens: int
    reset_tokens_us: int = Field(description="Microseconds until the token debt is paid off.")


class Limits(Told):
    """A team's live limits. Times are unix microseconds of the Redis clock."""

    model_config = shown(examples.LIMITS)

    team_id: str
    now_us: int
    tier_id: str | None = Field(description="Null: not cached; the next request fills it.")
    request_tat_us: int | None = Field(description="Null: no debt.")
    token_tat_us: int | None = Field(description="Null: no debt.")
    limits: LimitState | None = Field(description="Null: the tier isn't cached.")


@router.get("/limits", responses=not_found("team"))
async def get_limits(team_id: Id, known: Known) -> Limits:
    """Return a team's live limits, without moving anything; 503 where admission doesn't answer."""
    async with known.database.reading() as session:
        await store.teams.get(session, team_id)
    reply = await known.admission.limits(team_id)
    state = None
    if reply.limits is not None:
        state = LimitState.model_validate(reply.limits, from_attributes=True)
    return Limits(
        team_id=team_id,
        now_us=reply.now_us,
        tier_id=reply.tier_id,
        request_tat_us=reply.request_tat_us,
        token_tat_us=reply.token_tat_us,
        limits=state,
    )
