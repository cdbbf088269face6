"""Errors in the words of the API that was called: ours are written, a provider's are read."""

from typing import Protocol

import msgspec

from edge_proxy.domain.problems import Problem


class Shape(Protocol):
    """How one API's clients expect errors."""

    def error(self, problem: Problem) -> bytes:
        """Return a problem as a response's body, JSON."""

    def error_event(self, problem: Problem) -> bytes:
        """Return a problem as the event at which clients give a stream up."""

    def is_error(self, body: bytes) -> bool:
        """Say whether a provider's body is an error that clients can read."""

    def error_code(self, body: bytes) -> str | None:
        """Return the code of a provider's error; None where it has none."""


class _Detail(msgspec.Struct):
    code: msgspec.Raw = msgspec.Raw(b"null")
    type: msgspec.Raw = msgspec.Raw(b"null")


class _Body(msgspec.Struct):
    error: _Detail


_body = msgspec.json.Decoder(_Body)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text = msgspec.json.Decoder(str)


class OpenAIShape:
    """`{"error": {"message", "type", "param", "code"}}`."""

    def error(self, problem: Problem) -> bytes:
        """Return a problem as a response's body, JSON."""
        detail = {
            "message": problem.message,
            "type": problem.type,
            "param": problem.param,
            "code": problem.code,
            **({} if problem.details is None else {"details": problem.details}),
        }
        return msgspec.json.encode({"error": detail})

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


OPENAI_SHAPE = OpenAIShape()
