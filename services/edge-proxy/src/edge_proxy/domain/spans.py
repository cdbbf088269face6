"""What a trace tells of a request: who was told what, and how each attempt went.

Names are those of OpenTelemetry's semantic conventions where they have one. Nothing here comes from
a body or a header of anybody's but for the model that a provider says it served.
"""

from urllib.parse import urlsplit

from contracts.inference import Outcome
from contracts.usage import Usage
from edge_proxy.domain.endpoints import CHAT_COMPLETIONS, COMPLETIONS, EMBEDDINGS
from edge_proxy.domain.inference import Attempt, Inference
from edge_proxy.domain.problems import Problem
from edge_proxy.domain.reasons import HEADER
from edge_proxy.domain.routes import Target
from kit.traces.tracer import Attributes, Kind, Past

FIRST_BYTE = "first byte"

_CHAT = "chat"
_OPERATIONS = {
    CHAT_COMPLETIONS.path: _CHAT,
    COMPLETIONS.path: "text_completion",
    EMBEDDINGS.path: "embeddings",
}
_PORTS = {"http": 80, "https": 443}

_Notes = dict[str, str | int | float | bool]


def about_inference(inference: Inference) -> Attributes:
    """Return what is known of a request once it is understood."""
    return {
        "quotagate.team_id": inference.caller.team_id,
        "quotagate.inference_id": inference.inference_id,
        "gen_ai.operation.name": _OPERATIONS.get(inference.endpoint.path, _CHAT),
        "gen_ai.request.model": inference.model,
        "gen_ai.request.stream": inference.streaming,
    }


def about_problem(problem: Problem) -> Attributes:
    """Return why a request was refused: the limit, where one did it."""
    return {
        "quotagate.code": problem.code,
        "quotagate.reason": problem.headers.get(HEADER, problem.code),
    }


def span_of(attempt: Attempt, outcome: Outcome, finished_at_us: int) -> Past:
    """Return an attempt that is over as a span, from its dispatch to the answer's end."""
    target = attempt.leg.target
    about = about_inference(attempt.inference)
    notes: _Notes = {
        **about,
        "quotagate.attempt_no": attempt.attempt_no,
        "quotagate.provider": target.provider.name,
        "quotagate.outcome": outcome.value,
        "quotagate.client_gone": attempt.client_gone,
        "gen_ai.provider.name": target.provider.adapter.name,
        "gen_ai.request.model": target.model,
        **_address(target),
    }
    if attempt.answer.model_served is not None:
        notes["gen_ai.response.model"] = attempt.answer.model_served
    if attempt.status_code is not None:
        notes["http.response.status_code"] = attempt.status_code
    if attempt.answer.usage.usage is not None:
        notes |= _tokens(attempt.answer.usage.usage)
    first_us = attempt.first_byte_at_us
    return Past(
        name=f"{about['gen_ai.operation.name']} {target.model}",
        kind=Kind.CLIENT,
        started_us=attempt.started_at_us,
        ended_us=finished_at_us,
        attributes=notes,
        error_type=_error_type(attempt, outcome),
        events={} if first_us is None else {FIRST_BYTE: first_us},
    )


def _error_type(attempt: Attempt, outcome: Outcome) -> str | None:
    return None if outcome is Outcome.SUCCEEDED else attempt.failure or outcome.value


def _address(target: Target) -> _Notes:
    parts = urlsplit(target.provider.base_url)
    return {
        "server.address": parts.hostname or "",
        "server.port": parts.port or _PORTS[parts.scheme],
    }


def _tokens(usage: Usage) -> _Notes:
    """Return the usage by the conventions' classes: theirs of input and output hold all others."""
    cache_write = usage.cache_write_5m + usage.cache_write_1h
    return {
        "gen_ai.usage.input_tokens": usage.input + usage.cache_read + cache_write,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": cache_write,
        "gen_ai.usage.output_tokens": usage.output + usage.reasoning,
    }
