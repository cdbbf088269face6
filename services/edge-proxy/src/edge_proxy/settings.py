"""What the edge reads from its environment."""

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr

from edge_proxy.domain.addresses import ForwardingHeader, Network
from kit.settings import NatsSettings, TracesSettings

_MIB = 1024**2


def _split(networks: object) -> object:
    """Split what a variable holds."""
    if not isinstance(networks, str):
        return networks
    return [each.strip() for each in networks.split(",") if each.strip()]


class Settings(NatsSettings, TracesSettings):
    """The edge's settings."""

    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    key_pepper: SecretStr = Field(
        min_length=16, description="The pepper under which API keys' secrets are hashed."
    )
    routes_file: Path = Field(description="TOML file of the providers and the models' routes.")
    data_dir: Path = Field(
        description="Folder of the spool and the dispatch journal; may be shared by edges of one"
        " machine."
    )

    preflight_timeout_ms: int = Field(
        250, ge=1, description="Milliseconds until a preflight without an answer is a 503."
    )
    postflight_timeout_ms: int = Field(
        1000, ge=1, description="Milliseconds until a postflight without an answer is given up."
    )
    key_lookup_timeout_ms: int = Field(
        1000, ge=1, description="Milliseconds until a key lookup without an answer is a 503."
    )
    key_fresh_s: float = Field(
        30.0, gt=0, description="Seconds a key's facts are used without asking again."
    )
    key_stale_s: float = Field(
        300.0, gt=0, description="Seconds they are used at most while nobody answers."
    )

    hand_off_s: float = Field(
        10.0, gt=0, description="Seconds to get a record acknowledged before it is spooled."
    )
    ack_timeout_s: float = Field(
        2.0, gt=0, description="Seconds one publish waits for its acknowledgement."
    )
    orphan_check_s: float = Field(
        10.0, gt=0, description="Seconds between looks for what dead edges left in the data folder."
    )

    idempotency_s: int = Field(
        3600,
        ge=60,
        le=24 * 3600,
        description="Seconds an idempotency key is remembered after its request has ended.",
    )
    idempotency_lease_s: float = Field(
        30.0, ge=1, description="Seconds until the key of an edge that died may be used again."
    )
    idempotency_answer_bytes: int = Field(
        256 * 1024,
        ge=0,
        le=640 * 1024,
        description="Largest answer that is kept to be replayed; a message of NATS must hold it.",
    )
    idempotency_timeout_ms: int = Field(
        1000, ge=1, description="Milliseconds the key-value store may take for one question."
    )

    stored_response_timeout_ms: int = Field(
        1000,
        ge=1,
        description="Milliseconds a stored response may take to be remembered or looked up.",
    )

    policies_file: Path | None = Field(
        None, description="TOML file of endpoint policies; none: no endpoint has one."
    )
    trusted_proxies: Annotated[tuple[Network, ...], BeforeValidator(_split)] = Field(
        (),
        description="Networks of the proxies in front, comma separated, such as"
        " `10.0.0.0/8,2001:db8::/32`; whose word on a client's address is taken.",
    )
    forwarding_header: ForwardingHeader = Field(
        "x-forwarded-for",
        description="Header in which they name it: `x-forwarded-for` or `forwarded`.",
    )
    max_connections_per_address: int = Field(
        2000, ge=0, description="Connections that one address may have open; 0: any number."
    )
    max_new_connections_per_address: int = Field(
        0, ge=0, description="Connections that one address may open a second; 0: any number."
    )
    max_auth_failures_per_address: int = Field(
        600,
        ge=0,
        description="Calls without a valid key that one address may make a minute, before its calls"
        " with keys that weren't found good before are refused without a look; 0: any number.",
    )

    max_in_flight: int = Field(
        1024, ge=1, description="Requests handled at once; more are refused with 503."
    )
    max_at_work: int = Field(
        320,
        ge=1,
        description="Requests handled at once that wait for no provider, twice as many out of a"
        " calm; more are refused with 503. It bounds how long a request waits for the others.",
    )
    max_body_bytes: int = Field(32 * _MIB, ge=1, description="Largest request body.")
    body_timeout_s: float = Field(60.0, gt=0, description="Seconds a client may take to send it.")
    max_answer_bytes: int = Field(
        64 * _MIB, ge=1, description="Largest provider answer that isn't a stream, decompressed."
    )
    max_event_bytes: int = Field(
        8 * _MIB, ge=1, description="Largest event of a stream that is searched for usage."
    )
    keep_alive_s: float = Field(
        15.0, gt=0, description="Seconds of silence after which a stream gets a comment."
    )
    client_stall_s: float = Field(
        60.0, gt=0, description="Seconds after which a client that doesn't read is cut."
    )
    drain_s: float = Field(
        60.0, ge=0, description="Seconds a provider is still read after its client left."
    )
    drain_bytes: int = Field(
        64 * _MIB, ge=0, description="Bytes that are still read after the client left."
    )
