"""What the control plane reads from its environment."""

from typing import Annotated

from pydantic import Field, SecretStr

from kit.settings import NatsSettings, PostgresSettings


class ControlPlaneSettings(NatsSettings, PostgresSettings):
    """Settings of the control plane."""

    port: Annotated[int, Field(ge=0, le=65535)] = Field(
        8081, description="Port to listen on; 0 picks a free one."
    )
    admin_token: SecretStr = Field(
        min_length=16, description="Bearer token of the admin API; 16 characters at least."
    )
    key_pepper: SecretStr = Field(
        min_length=16,
        description="Pepper of the hashes of API keys, the same on every edge; never changed.",
    )
    admin_body_max_bytes: int = Field(
        65_536, ge=1_024, description="Largest body of an admin request, in bytes."
    )
    admin_body_timeout_s: float = Field(
        10.0, gt=0, description="Seconds until a body that is still arriving is given up."
    )
    limits_timeout_s: float = Field(
        1.0, gt=0, description="Seconds to wait for admission when a team's live limits are asked."
    )
    outbox_poll_s: float = Field(
        1.0, gt=0, description="Seconds between looks at the outbox when nothing wakes the relay."
    )
    outbox_ack_timeout_s: float = Field(
        5.0, gt=0, description="Seconds to wait for the stream's ack of one event."
    )
    idempotency_retention_h: int = Field(
        168, ge=1, description="Hours that the answers to admin idempotency keys are kept."
    )
