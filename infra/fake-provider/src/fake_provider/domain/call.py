"""What a request asks for, the same for every API; and how its words are counted."""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from fake_provider.domain.errors import ApiError
from fake_provider.errors import RefusedCallError

UNKNOWN_MODEL_PREFIX = "no-such-"
"""Every model is served, but those whose name begins so: a real provider knows none of them."""


class Part(msgspec.Struct):
    """One part of a message or of an input; only its text counts."""

    text: str = ""


Content = str | list[Part] | None


class Message(msgspec.Struct):
    """One message of a conversation, in any of the APIs."""

    content: Content = None


class Orders(msgspec.Struct):
    """What of `metadata` is meant for this provider."""

    fake: str = ""
    marker: str = ""


class Request(msgspec.Struct, kw_only=True):
    """What all requests have in common."""

    model: str
    stream: bool | None = None
    metadata: Orders | None = None

    @property
    def orders(self) -> Orders:
        """The orders, or none."""
        return self.metadata or Orders()


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request, whatever API it came through."""

    model: str
    orders: Orders
    prompt_tokens: int
    """Words of the whole input, at least one."""

    stream: bool = False
    include_usage: bool | None = None
    """As the request said it; None: it said nothing."""

    has_stream_options: bool = False
    max_output_tokens: int | None = None
    tool_names: tuple[str, ...] = ()
    is_tool_forced: bool = False
    choices: int = 1
    store: bool = False
    """Keep the answer, so that it can be fetched again."""

    # Embeddings only.
    inputs: int = 1
    dimensions: int = 1536
    as_base64: bool = False


RequestT = TypeVar("RequestT", bound=Request)


def parse(decoder: msgspec.json.Decoder[RequestT], body: bytes) -> RequestT:
    """Read a request's body.

    Raises:
        RefusedCallError: it isn't JSON, isn't a request of this API, or asks for no model we serve.

    """
    try:
        request = decoder.decode(body)
    except msgspec.ValidationError as error:
        raise RefusedCallError(ApiError(status=400, message=str(error))) from None
    except msgspec.DecodeError:
        raise RefusedCallError(
            ApiError(status=400, message="We could not parse the JSON body of your request.")
        ) from None
    if request.model.startswith(UNKNOWN_MODEL_PREFIX):
        message = f"The model `{request.model}` does not exist or you do not have access to it."
        raise RefusedCallError(ApiError(status=404, message=message))
    return request


def words_of(contents: Iterable[Content]) -> int:
    """Return the number of words in texts and parts, at least one: what they cost as a prompt."""
    words = 0
    for content in contents:
        if isinstance(content, str):
            words += len(content.split())
        elif content is not None:
            words += sum(len(part.text.split()) for part in content)
    return max(words, 1)
