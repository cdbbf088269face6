"""What of a request's body the gateway needs to know, and the smallest changes to it.

Only the top level is decoded; values stay the bytes they were.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from edge_proxy.domain.problems import INVALID_JSON, Problem, invalid_request

Members = Mapping[str, msgspec.Raw]

_OURS = frozenset({"model", "stream", "stream_options", "background"})
_MAX_MODEL_CHARS = 256

_top_level = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text = msgspec.json.Decoder(str)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as far as it was read."""

    body: bytes
    members: Members
    """The top level: each name once, each value as it was sent."""
    model: str
    stream: bool
    ambiguous: bool
    """The body says `model` (or another name that matters here) in more than one place, or spells
    names in escapes: a provider's parser might see another model than the one that was judged."""

    def as_sent(self) -> bytes:
        """Return the body untouched, unless two parsers might read it differently."""
        return self.with_members(self.members) if self.ambiguous else self.body

    def with_members(self, members: Members) -> bytes:
        """Return the body with another top level; the values' bytes stay as they are."""
        return msgspec.json.encode(members)

    def with_appended(self, name: str, value: bytes) -> bytes:
        """Return the body with one more member, whose name it doesn't have, at its end."""
        if self.ambiguous:
            return self.with_members({**self.members, name: msgspec.Raw(value)})
        head = self.body.rstrip(b" \t\r\n")[:-1]
        return b'%b,"%b":%b}' % (head, name.encode(), value)


def read(body: bytes) -> Asked | Problem:
    """Read a request's body, or say what is wrong with it."""
    try:
        members = _top_level.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return INVALID_JSON
    for name in members:
        if name not in _OURS and name.lower() in _OURS:
            # Some parsers ignore case: this one would overrule what is judged here.
            return invalid_request("invalid_parameter", f"Unknown member {name!r}.", name)
    model = _model(members.get("model"))
    if isinstance(model, Problem):
        return model
    stream = bytes(members.get("stream", b"null"))
    if stream not in (b"true", b"false", b"null"):
        return invalid_request("invalid_parameter", "`stream` must be a boolean.", "stream")
    return Asked(
        body=body,
        members=members,
        model=model,
        stream=stream == b"true",
        ambiguous=_ambiguous(body),
    )


def _model(raw: msgspec.Raw | None) -> str | Problem:
    if raw is None:
        return invalid_request("missing_parameter", "`model` is missing.", "model")
    try:
        model = _text.decode(raw)
    except msgspec.DecodeError:
        model = ""
    if not 0 < len(model) <= _MAX_MODEL_CHARS:
        return invalid_request("invalid_parameter", "`model` must be a model's name.", "model")
    return model


def _ambiguous(body: bytes) -> bool:
    # \u006x and \u007x are the lower case letters: no encoder writes them so.
    return (
        body.count(b'"model"') != 1
        or body.count(b'"stream"') > 1
        or body.count(b'"background"') > 1
        or b"\\u006" in body
        or b"\\u007" in body
    )
