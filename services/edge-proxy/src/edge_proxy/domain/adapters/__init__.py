"""What each provider API looks like: one file an API, without I/O. Add a row, not a branch."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from edge_proxy.domain.adapters.adapter import Adapter, Traits
from edge_proxy.domain.adapters.anthropic import anthropic
from edge_proxy.domain.adapters.openai import openai

ADAPTERS: Mapping[str, Callable[[Traits], Adapter]] = MappingProxyType(
    {"openai": openai, "anthropic": anthropic}
)
"""By the name in the routes file."""
