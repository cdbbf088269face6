"""An API as a value: how it is addressed, read and answered."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fake_provider.domain.answer import Answer
from fake_provider.domain.call import Call
from fake_provider.domain.errors import ApiError, anthropic_error, openai_error
from fake_provider.domain.frames import Frame

Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the APIs of one provider share."""

    error: Callable[[ApiError, str], bytes]
    """Takes the error and the request id."""

    request_id_header: bytes
    headers: tuple[Header, ...]
    """Sent with every answer: a real provider's own limits, which a gateway must not pass off as
    its own."""

    key_headers: tuple[tuple[bytes, bytes], ...]
    """Where a key may stand: a header's name, and what goes before the key."""

    required_header: bytes | None = None

    def refusal(self, headers: dict[bytes, bytes], api_keys: frozenset[bytes]) -> ApiError | None:
        """Return why this request isn't served, judged by its headers; None: it is."""
        given = (
            headers.get(name, b"").removeprefix(prefix)
            for name, prefix in self.key_headers
            if headers.get(name, b"").startswith(prefix)
        )
        if not any(key in api_keys for key in given if key):
            return ApiError(status=401, message="Incorrect API key provided.")
        if self.required_header is not None and self.required_header not in headers:
            return ApiError(
                status=400, message=f"{self.required_header.decode()}: header is required"
            )
        return None


def failed_chunks(answer: Answer, request_id: str) -> Frame:
    """Return the event by which OpenAI ends a stream of chunks that failed."""
    return Frame(b"data: " + openai_error(failure_of(answer), request_id) + b"\n\n")


def failure_of(answer: Answer) -> ApiError:
    """Return the error that the behaviour orders in the middle of a stream."""
    behaviour = answer.behaviour
    return ApiError(
        status=behaviour.status or 500,
        message=behaviour.error_message,
        type=behaviour.error_type,
        code=behaviour.error_code,
    )


@dataclass(frozen=True, slots=True)
class Api:
    """One endpoint. An API without `frames` doesn't stream."""

    path: str
    dialect: Dialect
    decode: Callable[[bytes], Call]
    body: Callable[[Answer], bytes]
    frames: Callable[[Answer], Iterator[Frame]] | None = None
    failure: Callable[[Answer, str], Frame] = failed_chunks
    """Takes the answer that was going out, and the request id."""


OPENAI = Dialect(
    error=openai_error,
    request_id_header=b"x-request-id",
    headers=(
        (b"openai-version", b"2020-10-01"),
        (b"openai-organization", b"fake-organization"),
        (b"openai-processing-ms", b"1"),
        (b"x-ratelimit-limit-requests", b"30000"),
        (b"x-ratelimit-limit-tokens", b"150000000"),
        (b"x-ratelimit-remaining-requests", b"29999"),
        (b"x-ratelimit-remaining-tokens", b"149999000"),
        (b"x-ratelimit-reset-requests", b"2ms"),
        (b"x-ratelimit-reset-tokens", b"0s"),
        (b"set-cookie", b"__cf_bm=fake; path=/; HttpOnly"),
    ),
    key_headers=((b"authorization", b"Bearer "),),
)
"""OpenAI's."""

ANTHROPIC = Dialect(
    error=anthropic_error,
    request_id_header=b"request-id",
    headers=(
        (b"anthropic-organization-id", b"fake-organization"),
        (b"anthropic-ratelimit-requests-limit", b"4000"),
        (b"anthropic-ratelimit-requests-remaining", b"3999"),
        (b"anthropic-ratelimit-tokens-limit", b"400000"),
        (b"anthropic-ratelimit-tokens-remaining", b"400000"),
    ),
    key_headers=((b"x-api-key", b""), (b"authorization", b"Bearer ")),
    required_header=b"anthropic-version",
)
"""Anthropic's."""
