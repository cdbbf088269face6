"""`/v1/embeddings`."""

import base64
import functools
import struct
from typing import Literal

import msgspec

from fake_provider.domain.answer import Answer
from fake_provider.domain.api import OPENAI, Api
from fake_provider.domain.call import Call, Request, parse
from fake_provider.domain.completions import TokenIds, input_tokens
from fake_provider.domain.usage import embeddings_wire, member


class EmbeddingRequest(Request, kw_only=True):
    """What is read of a request."""

    input: str | list[str | int | TokenIds]
    dimensions: int | None = None
    encoding_format: Literal["float", "base64"] = "float"


_decoder = msgspec.json.Decoder(EmbeddingRequest)


def _decode(body: bytes) -> Call:
    request = parse(_decoder, body)
    is_one = isinstance(request.input, str) or (
        bool(request.input) and isinstance(request.input[0], int)
    )
    return Call(
        model=request.model,
        orders=request.orders,
        prompt_tokens=input_tokens(request.input),
        inputs=1 if is_one else len(request.input),
        dimensions=request.dimensions or 1536,
        as_base64=request.encoding_format == "base64",
    )


@functools.lru_cache(maxsize=64)
def _vector(dimensions: int, as_base64: bool) -> msgspec.Raw:  # noqa: FBT001 - a cache key
    """Return one unit vector as JSON: as numbers, or as base64 of little-endian floats."""
    floats = [dimensions**-0.5] * dimensions
    if not as_base64:
        return msgspec.Raw(msgspec.json.encode(floats))
    packed = struct.pack(f"<{dimensions}f", *floats)
    return msgspec.Raw(msgspec.json.encode(base64.b64encode(packed).decode()))


def _body(answer: Answer) -> bytes:
    vector = _vector(answer.call.dimensions, answer.call.as_base64)
    data = [
        {"object": "embedding", "index": index, "embedding": vector}
        for index in range(answer.call.inputs)
    ]
    usage = member(embeddings_wire(answer.usage), answer.behaviour.usage_shape)
    return msgspec.json.encode({"object": "list", "data": data, "model": answer.model, **usage})


EMBEDDINGS = Api("/v1/embeddings", OPENAI, _decode, _body)
"""The API."""
