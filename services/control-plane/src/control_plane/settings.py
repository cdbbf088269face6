"""What the control plane reads from its environment."""

from typing import Annotated

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from control_plane.domain.webhooks import SecretFormatError, read_secrets
from kit.settings import NatsSettings, PostgresSettings, TracesSettings


class ControlPlaneSettings(NatsSettings, PostgresSettings, TracesSettings):
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
    webhook_url: str = Field(
        "",
        pattern=r"^(https?://[!-~]+)?$",
        description="Where the operator is told of events, signed; empty: nowhere.",
    )
    webhook_secret: SecretStr = Field(
        SecretStr(""),
        validate_default=True,
        description="Signs what is told: `whsec_` and base64 of 24 bytes or more; two, separated by"
        " a space, while one replaces the other.",
    )
    webhook_timeout_s: float = Field(
        10.0, gt=0, le=300, description="Seconds that the webhook has for its answer."
    )
    webhook_patience_h: float = Field(
        72.0,
        gt=0,
        description="Hours after which an event that the webhook never took is given up.",
    )

    @field_validator("webhook_secret")
    @classmethod
    def _signs_what_is_told(cls, secret: SecretStr, info: ValidationInfo) -> SecretStr:
        """See that there is a usable secret where something is told."""
        text = secret.get_secret_value()
        try:
            count = len(read_secrets(text))
        except SecretFormatError as error:
            raise ValueError(str(SecretFormatError.__doc__)) from error
        if info.data.get("webhook_url") and not count:
            raise ValueError("there is a webhook, and nothing is told unsigned")
        return secret
