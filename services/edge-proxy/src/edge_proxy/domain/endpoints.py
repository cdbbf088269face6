"""The endpoints of inference, one row each. Where a provider serves them, its adapter says."""

from dataclasses import dataclass

from edge_proxy.domain.asked import Asked
from edge_proxy.domain.problems import Problem, invalid_request
from edge_proxy.domain.shapes import ANTHROPIC_SHAPE, OPENAI_SHAPE, RESPONSES_SHAPE, Shape


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One way to ask for an inference."""

    path: str
    """Where clients find it, and how records name it."""
    shape: Shape
    """How its clients expect errors."""
    unmeterable: tuple[str, ...] = ()
    """Members that must not be true: with them the usage would never come by here."""

    def objection(self, asked: Asked) -> Problem | None:
        """Say why a request can't be served, whatever its model."""
        for name in self.unmeterable:
            if bytes(asked.members.get(name, b"false")) not in (b"false", b"null"):
                message = f"`{name}` is not supported: the usage of such a call can't be metered."
                return invalid_request("unsupported_parameter", message, name)
        return None


CHAT_COMPLETIONS = Endpoint("/v1/chat/completions", OPENAI_SHAPE)
COMPLETIONS = Endpoint("/v1/completions", OPENAI_SHAPE)
EMBEDDINGS = Endpoint("/v1/embeddings", OPENAI_SHAPE)
RESPONSES = Endpoint("/v1/responses", RESPONSES_SHAPE, unmeterable=("background",))
MESSAGES = Endpoint("/v1/messages", ANTHROPIC_SHAPE)

ENDPOINTS = (CHAT_COMPLETIONS, COMPLETIONS, EMBEDDINGS, RESPONSES, MESSAGES)


def shape_at(path: str) -> Shape:
    """Return how clients of an address expect errors, also where there is no endpoint."""
    below = f"{MESSAGES.path}/"
    return ANTHROPIC_SHAPE if f"{path}/".startswith(below) else OPENAI_SHAPE
