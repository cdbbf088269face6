"""The endpoints of inference, one row each. Where a provider serves them, its adapter says."""

from dataclasses import dataclass

from edge_proxy.domain.shapes import OPENAI_SHAPE, Shape


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One way to ask for an inference."""

    path: str
    """Where clients find it, and how records name it."""
    shape: Shape
    """How its clients expect errors."""


CHAT_COMPLETIONS = Endpoint("/v1/chat/completions", OPENAI_SHAPE)

ENDPOINTS = (CHAT_COMPLETIONS,)
