"""OpenAI's API, as OpenAI, vLLM, Groq and many others speak it."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from edge_proxy.domain.adapters.adapter import Answer, Outgoing
from edge_proxy.domain.adapters.openai_stream import OpenAIStream
from edge_proxy.domain.adapters.openai_usage import model_served, read_usage
from edge_proxy.domain.asked import Asked, Members
from edge_proxy.domain.endpoints import CHAT_COMPLETIONS
from edge_proxy.domain.usage import NO_USAGE

_TRUE = msgspec.Raw(b"true")
_INCLUDE_USAGE = b'{"include_usage":true}'

_object = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)


class OpenAIAdapter:
    """Chat completions at the usual path; usage in `usage`, in a stream only if asked for."""

    name = "openai"
    paths: Mapping[str, str] = MappingProxyType({CHAT_COMPLETIONS.path: "/chat/completions"})

    def credentials(self, api_key: str) -> tuple[tuple[str, str], ...]:
        """Return the headers that authenticate the gateway."""
        return (("authorization", f"Bearer {api_key}"),)

    def outgoing(self, asked: Asked, model: str, *, stream_usage: bool) -> Outgoing:
        """Return the body to send, which asks for the stream's usage where that can be asked."""
        if not asked.stream:
            return Outgoing(_as_sent(asked, model), hides_usage=False)
        if not stream_usage:
            return Outgoing(_without_stream_options(asked, model), hides_usage=False)
        try:
            options = _object.decode(asked.members.get("stream_options", b"null"))
        except msgspec.DecodeError:
            # Not options at all: the provider's refusal is the client's answer.
            return Outgoing(_as_sent(asked, model), hides_usage=False)
        if options is not None and bytes(options.get("include_usage", b"")) == b"true":
            return Outgoing(_as_sent(asked, model), hides_usage=False)
        return Outgoing(_with_usage(asked, model, options), hides_usage=True)

    def read_answer(self, body: bytes) -> Answer | None:
        """Read a whole answer; None: not a JSON object."""
        try:
            members = _object.decode(body)
        except (msgspec.DecodeError, RecursionError):
            return None
        if members is None:
            return None
        usage = members.get("usage")
        return Answer(
            usage=NO_USAGE if usage is None else read_usage(bytes(usage)),
            model_served=model_served(members),
        )

    def scanner(self, outgoing: Outgoing, max_event_bytes: int) -> OpenAIStream:
        """Return a scanner for the stream that answers this body."""
        return OpenAIStream(max_event_bytes, hides_usage=outgoing.hides_usage)


def _as_sent(asked: Asked, model: str) -> bytes:
    return asked.as_sent() if model == asked.model else asked.with_members(_renamed(asked, model))


def _with_usage(asked: Asked, model: str, options: Members | None) -> bytes:
    if model == asked.model and "stream_options" not in asked.members:
        return asked.with_appended("stream_options", _INCLUDE_USAGE)
    wanted = msgspec.json.encode({**(options or {}), "include_usage": _TRUE})
    return asked.with_members({**_renamed(asked, model), "stream_options": msgspec.Raw(wanted)})


def _without_stream_options(asked: Asked, model: str) -> bytes:
    if "stream_options" not in asked.members:
        return _as_sent(asked, model)
    members = _renamed(asked, model)
    return asked.with_members(
        {name: value for name, value in members.items() if name != "stream_options"}
    )


def _renamed(asked: Asked, model: str) -> Members:
    if model == asked.model:
        return asked.members
    return {**asked.members, "model": msgspec.Raw(msgspec.json.encode(model))}
