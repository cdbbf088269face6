"""Errors in the words of the API that was called: ours are written, a provider's are read."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import msgspec

from contracts.admission import LimitState
from edge_proxy.domain.anthropic_limits import anthropic_limit_headers
from edge_proxy.domain.problems import Problem


class Shape(Protocol):
    """How one API's clients expect errors, and what else only they know."""

    @property
    def takes_x_api_key(self) -> bool:
        """Whether its clients may send their key as `x-api-key`."""

    def error(self, problem: Problem) -> bytes:
        """Return a problem as a response's body, JSON."""

    def error_event(self, problem: Problem) -> bytes:
        """Return a problem as the event at which clients give a stream up."""

    def is_error(self, body: bytes) -> bool:
        """Say whether a provider's body is an error that clients can read."""

    def error_code(self, body: bytes) -> str | None:
        """Return the code of a provider's error; None where it has none."""

    def limit_headers(self, limits: LimitState, now_us: int) -> Mapping[str, str]:
        """Return the limits as only this API's clients know them; `now_us` is unix time."""


class _Detail(msgspec.Struct):
    code: msgspec.Raw = msgspec.Raw(b"null")
    type: msgspec.Raw = msgspec.Raw(b"null")


class _Body(msgspec.Struct):
    error: _Detail


_body = msgspec.json.Decoder(_Body)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text = msgspec.json.Decoder(str)


def _openai_detail(problem: Problem) -> dict[str, object]:
    return {
        "message": problem.message,
        "type": problem.type,
        "param": problem.param,
        "code": problem.code,
        **_details(problem),
    }


def _details(problem: Problem) -> dict[str, object]:
    return {} if problem.details is None else {"details": dict(problem.details)}


class OpenAIShape:
    """`{"error": {"message", "type", "param", "code"}}`."""

    takes_x_api_key = False

    def error(self, problem: Problem) -> bytes:
        """Return a problem as a response's body, JSON."""
        return msgspec.json.encode({"error": _openai_detail(problem)})

    def error_event(self, problem: Problem) -> bytes:
        """Return a problem as the event at which clients give a stream up."""
        return b"data: " + self.error(problem) + b"\n\n"

    def is_error(self, body: bytes) -> bool:
        """Say whether a provider's body is a JSON object; vLLM's errors have no `error` in it."""
        try:
            _object.decode(body)
        except (msgspec.DecodeError, RecursionError):
            return False
        return True

    def error_code(self, body: bytes) -> str | None:
        """Return the code of a provider's error, or its type where it has no code."""
        try:
            detail = _body.decode(body).error
        except (msgspec.DecodeError, RecursionError):
            return None
        for raw in (detail.code, detail.type):
            try:
                return _text.decode(raw)
            except msgspec.DecodeError:
                continue
        return None

    def limit_headers(self, _limits: LimitState, _now_us: int) -> Mapping[str, str]:
        """Return nothing: ours are OpenAI's own."""
        return {}


class ResponsesShape(OpenAIShape):
    """OpenAI's, but for streams, whose events have types."""

    def error_event(self, problem: Problem) -> bytes:
        """Return a problem as the event at which clients give a stream up.

        Documented are its members at the top; what OpenAI sends, and its own clients raise, is the
        `error` within. How many events came before, the gateway doesn't count.
        """
        detail = _openai_detail(problem)
        data = {**detail, "type": "error", "sequence_number": 0, "error": detail}
        return b"event: error\ndata: " + msgspec.json.encode(data) + b"\n\n"


class _AnthropicDetail(msgspec.Struct):
    type: str = ""
    message: str = ""


class _AnthropicBody(msgspec.Struct):
    error: _AnthropicDetail


_anthropic_body = msgspec.json.Decoder(_AnthropicBody)

_ANTHROPIC_TYPES = MappingProxyType(
    {
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        504: "timeout_error",
    }
)
_FIRST_SERVER_ERROR = 500
# An empty account is a 400 in the words of a wrong request, or a 402.
_OUT_OF_CREDIT = "Your credit balance is too low"


class AnthropicShape:
    """`{"type": "error", "error": {"type", "message"}}`, with our code as a further member."""

    takes_x_api_key = True

    def error(self, problem: Problem) -> bytes:
        """Return a problem as a response's body, JSON."""
        otherwise = (
            "api_error" if problem.status >= _FIRST_SERVER_ERROR else "invalid_request_error"
        )
        detail = {
            "type": _ANTHROPIC_TYPES.get(problem.status, otherwise),
            "message": problem.message,
            "code": problem.code,
            **_details(problem),
        }
        return msgspec.json.encode({"type": "error", "error": detail})

    def error_event(self, problem: Problem) -> bytes:
        """Return a problem as the event at which clients give a stream up."""
        return b"event: error\ndata: " + self.error(problem) + b"\n\n"

    def is_error(self, body: bytes) -> bool:
        """Say whether a provider's body is a JSON object with an `error` in it."""
        try:
            return "error" in _object.decode(body)
        except (msgspec.DecodeError, RecursionError):
            return False

    def error_code(self, body: bytes) -> str | None:
        """Return the type of a provider's error, which is all the code it has."""
        try:
            detail = _anthropic_body.decode(body).error
        except (msgspec.DecodeError, RecursionError):
            return None
        if detail.type == "billing_error" or detail.message.startswith(_OUT_OF_CREDIT):
            return "insufficient_quota"
        return detail.type or None

    def limit_headers(self, limits: LimitState, now_us: int) -> Mapping[str, str]:
        """Return the limits as Anthropic's clients know them; `now_us` is unix time."""
        return anthropic_limit_headers(limits, now_us)


OPENAI_SHAPE = OpenAIShape()
RESPONSES_SHAPE = ResponsesShape()
ANTHROPIC_SHAPE = AnthropicShape()
