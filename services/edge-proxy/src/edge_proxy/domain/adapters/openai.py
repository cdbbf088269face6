"""OpenAI's API, as OpenAI, vLLM, Groq and many others speak it."""

from functools import partial
from types import MappingProxyType

from edge_proxy.domain import endpoints
from edge_proxy.domain.adapters.adapter import Adapter, Api, Traits
from edge_proxy.domain.adapters.bodies import untouched
from edge_proxy.domain.adapters.openai_chunks import (
    ChunkReader,
    asking_for_usage,
    without_options,
)
from edge_proxy.domain.adapters.openai_responses import ResponseReader, stored_id
from edge_proxy.domain.adapters.openai_usage import (
    read_completion,
    read_embeddings,
    read_response,
)


def openai(traits: Traits) -> Adapter:
    """Return the adapter for a provider with these traits."""
    return Adapter(
        name="openai",
        apis=MappingProxyType(
            {
                endpoints.CHAT_COMPLETIONS.path: _completions("/chat/completions", traits),
                endpoints.COMPLETIONS.path: _completions("/completions", traits),
                endpoints.EMBEDDINGS.path: _embeddings(),
                endpoints.RESPONSES.path: _responses(traits),
            }
        ),
        credentials=_credentials,
    )


def _credentials(api_key: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {api_key}"),)


def _completions(path: str, traits: Traits) -> Api:
    """Usage in `usage`; in a stream only if asked for."""
    read_usage = partial(read_completion, traits=traits)
    return Api(
        path=path,
        outgoing=asking_for_usage if traits.stream_usage else without_options,
        read_usage=read_usage,
        new_reader=partial(ChunkReader, read_usage),
    )


def _embeddings() -> Api:
    """Never a stream; should one come nevertheless, it is read as one of chunks."""
    return Api(
        path="/embeddings",
        outgoing=untouched,
        read_usage=read_embeddings,
        new_reader=partial(ChunkReader, read_embeddings),
    )


def _responses(traits: Traits) -> Api:
    """Usage in `usage`; in a stream, of the response that the last event carries."""
    read_usage = partial(read_response, traits=traits)
    return Api(
        path="/responses",
        outgoing=untouched,
        read_usage=read_usage,
        new_reader=partial(ResponseReader, read_usage),
        stored_id=stored_id,
    )
