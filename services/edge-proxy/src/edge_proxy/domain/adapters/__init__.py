"""What each provider API looks like: one file an API, without I/O. Add a row, not a branch."""

from collections.abc import Mapping
from types import MappingProxyType

from edge_proxy.domain.adapters.adapter import Adapter
from edge_proxy.domain.adapters.openai import OpenAIAdapter

ADAPTERS: Mapping[str, Adapter] = MappingProxyType(
    {adapter.name: adapter for adapter in (OpenAIAdapter(),)}
)
