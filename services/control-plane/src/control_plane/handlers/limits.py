"""`/teams/{id}/limits`: what Redis holds of a team, as admission reads it."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query
from pydantic import Field

from contracts.admission import (
    KeyLimits,
    LimitExplanation,
    LimitReason,
    LimitScope,
    LimitsRequest,
)
from control_plane import store
from control_plane.domain.errors import InvalidError
from control_plane.domain.rates import key_problem
from control_plane.domain.spend import REASONS
from control_plane.handlers import examples
from control_plane.handlers.examples import shown
from control_plane.handlers.fields import Id, Model, Told, Usd
from control_plane.handlers.openapi import not_found
from control_plane.handlers.services import Known
from kit.money import usd_from_nano

Endpoint = Annotated[str, Query(max_length=200, examples=["POST /v1/chat/completions"])]

router = APIRouter(prefix="/admin/v1/teams/{team_id}", tags=["limits"])


class RateState(Told):
    """One limit per minute."""

    model_config = shown(examples.RATE_STATE)

    limit: int
    remaining: int
    reset_us: int = Field(description="Microseconds until the debt is paid off.")


class LimitState(Told):
    """The limits that headers tell, as a request would meet them now."""

    limit_requests: int = Field(description="RPM.")
    remaining_requests: int = Field(description="Requests that would be admitted at once.")
    reset_requests_us: int = Field(description="Microseconds until the request debt is paid off.")
    limit_tokens: int = Field(description="TPM.")
    remaining_tokens: int
    reset_tokens_us: int = Field(description="Microseconds until the token debt is paid off.")
    input_tokens: RateState | None = Field(description="Null: the tier has no such limit.")
    output_tokens: RateState | None = Field(description="Null: the tier has no such limit.")
    remaining_day_requests: int | None = Field(
        description="Null: the tier has no such limit, or the day isn't counted yet."
    )
    remaining_day_tokens: int | None


class SpendAmounts(Told):
    """A limit of spend in USD."""

    limit: Usd
    used: Usd
    remaining: Usd


class Explanation(Told):
    """One limit as the next request would meet it."""

    model_config = shown(examples.EXPLANATION)

    reason: LimitReason
    scope: LimitScope
    limit: int = Field(description="Per minute, at once, or a period; of spend nano-USD.")
    known: bool = Field(
        description="False: the period isn't counted yet; the next request has it so."
    )
    used: int = Field(description="In debt, in flight, or counted in the period.")
    remaining: int
    reset_us: int | None = Field(
        description="Microseconds until nothing of it is used any more; null: nobody can tell."
    )
    retry_after_us: int = Field(description="Microseconds until it admits; 0: it does.")
    shadow: bool = Field(description="It refuses nobody.")
    window: str | None = Field(
        description="Of an endpoint's limit: which of its windows, by policy and label."
    )
    usd: SpendAmounts | None = Field(description="The same of a limit of spend; null: it is none.")


class Limits(Told):
    """A team's live limits. Times are unix microseconds of the Redis clock."""

    model_config = shown(examples.LIMITS)

    team_id: str
    now_us: int
    tier_id: str | None = Field(
        description="As cached. Null: it isn't; the next request fills it, and what is told here is"
        " of the tier that the team has by the database."
    )
    balance_negative: bool | None = Field(
        description="True: the next request is a 402 before any limit is asked. Null: the balance"
        " isn't cached."
    )
    request_tat_us: int | None = Field(description="Null: no debt.")
    token_tat_us: int | None = Field(description="Null: no debt.")
    limits: LimitState | None = Field(
        description="Null: admission doesn't know the tier's numbers yet."
    )
    decides: LimitReason | None = Field(
        description="Which limit would refuse the next request: the one with the longest wait."
    )
    problem: str | None = Field(
        description="Why the limits of the tier or the key, as they are stored, can't be: its"
        " requests are refused with a 503. Null: they can."
    )
    explained: list[Explanation] = Field(
        description="Every limit that a request by this key for this model at this endpoint would"
        " meet."
    )


@router.get("/limits", responses=not_found("team"))
async def get_limits(
    team_id: Id,
    known: Known,
    key_id: Id | None = None,
    model: Model | None = None,
    endpoint: Endpoint | None = None,
) -> Limits:
    """Return a team's live limits, without moving anything; 503 where admission doesn't answer.

    With a key's id or a model's name the limits of those are told as well, and with an endpoint and
    a key the windows that the edges' policies give each key there; 503 where no edge answers.
    """
    if endpoint is not None and key_id is None:
        raise InvalidError("endpoint: its windows are told for a key_id.", field="endpoint")
    own, problem = None, None
    async with known.database.reading() as session:
        team = await store.teams.get(session, team_id)
        if key_id is not None:
            key = await store.keys.of_team(session, team_id, key_id)
            problem = key_problem(key.limits)
            if key.limits and problem is None:
                own = msgspec.convert(key.limits, KeyLimits)
    reply = await known.admission.limits(
        LimitsRequest(
            team_id=team_id,
            key_id=key_id,
            model=model,
            key_limits=own,
            tier_id=team.tier_id,
            windows=() if endpoint is None else await known.edge.windows(endpoint),
        )
    )
    state, balance = None, reply.balance_nano_usd
    if reply.limits is not None:
        state = LimitState.model_validate(reply.limits, from_attributes=True)
    return Limits(
        team_id=team_id,
        now_us=reply.now_us,
        tier_id=reply.tier_id,
        balance_negative=None if balance is None else balance < 0,
        request_tat_us=reply.request_tat_us,
        token_tat_us=reply.token_tat_us,
        limits=state,
        decides=reply.decides,
        problem=reply.problem or problem,
        explained=[_explain(one) for one in reply.explained],
    )


def _explain(one: LimitExplanation) -> Explanation:
    amounts = None
    if one.reason in REASONS.values():
        amounts = SpendAmounts(
            limit=usd_from_nano(one.limit),
            used=usd_from_nano(one.used),
            remaining=usd_from_nano(one.remaining),
        )
    return Explanation(**msgspec.structs.asdict(one), usd=amounts)
