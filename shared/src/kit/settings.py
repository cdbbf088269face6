"""Settings come from the environment, once, typed; a wrong one ends the start with its name.

Every setting `x` is read from `QUOTAGATE_X`, or from the file that `QUOTAGATE_X_FILE` names
(for secrets); a trailing newline of the file is dropped.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from kit.errors import KitError

PREFIX = "QUOTAGATE_"
_EXIT_USAGE = 2
# These mean the file, not where a value is to be found.
_FILES_THEMSELVES = frozenset({f"{PREFIX}ROUTES", f"{PREFIX}POLICIES"})


class SettingsError(KitError):
    """A setting is missing or wrong."""


class ServiceSettings(BaseModel):
    """What every service reads. Frozen; each service adds its own fields."""

    model_config = ConfigDict(frozen=True)

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: Annotated[
        int, Field(ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    ]
    log_level: str = Field(
        "info", pattern="^(debug|info|warning|error)$", description="Least severe level to log."
    )
    grace_s: float = Field(
        30.0, gt=0, description="Seconds to finish what is in flight when told to stop."
    )
    recheck_s: float = Field(
        30.0,
        gt=0,
        description="Seconds between looks at whether the servers are still configured so that no"
        " promise breaks; a service that finds one unsafe closes until it is mended.",
    )


class NatsSettings(ServiceSettings):
    """For services on the bus."""

    nats_url: str = Field("nats://127.0.0.1:14222", description="NATS servers, comma separated.")
    nats_user: str = Field("", description="NATS user; empty: no authentication.")
    nats_password: SecretStr = Field(SecretStr(""), description="The NATS user's password.")
    nats_monitor_url: str = Field(
        "http://127.0.0.1:18222",
        description="NATS monitoring address; asked whether JetStream syncs before it acks.",
    )
    allow_unsynced_jetstream: bool = Field(
        default=False,
        description="Development only: be ready although JetStream acknowledges before it syncs.",
    )


class RedisSettings(ServiceSettings):
    """For services that touch Redis."""

    redis_url: SecretStr = Field(
        SecretStr("redis://127.0.0.1:16379/0"), description="Redis address with user and password."
    )
    redis_cluster: bool = Field(default=False, description="The address is a Redis Cluster's node.")
    redis_timeout_ms: int = Field(
        150, ge=1, description="Milliseconds until a Redis call counts as failed."
    )
    redis_connections: int = Field(16, ge=1, description="Most connections to Redis.")


class PostgresSettings(ServiceSettings):
    """For services that touch Postgres."""

    database_url: SecretStr = Field(
        SecretStr("postgresql://127.0.0.1:15432/quotagate"),
        description="postgresql:// address with role and password.",
    )
    database_connections: int = Field(8, ge=1, description="Most connections to Postgres.")
    database_timeout_s: float = Field(
        5.0, gt=0, description="Seconds until a statement or a wait for a connection is given up."
    )


class TracesSettings(ServiceSettings):
    """For services that requests go through."""

    traces_endpoint: str = Field(
        "",
        pattern=r"^(https?://[!-~]+)?$",
        description="Collector that spans are sent to, by OTLP over HTTP, such as"
        " `http://collector:4318`; empty: no traces.",
    )
    traces_sample: float = Field(
        0.1,
        ge=0,
        le=1,
        description="Share of the requests without a `traceparent` that are traced; where there is"
        " one, it says whether.",
    )


SettingsT = TypeVar("SettingsT", bound=ServiceSettings)


def load(settings: type[SettingsT], environment: Mapping[str, str] | None = None) -> SettingsT:
    """Read the settings.

    Raises:
        SettingsError: names each variable that is missing or wrong, never its value.

    """
    variables = _with_files(os.environ if environment is None else environment)
    values = {
        name: variables[PREFIX + name.upper()]
        for name in settings.model_fields
        if PREFIX + name.upper() in variables
    }
    try:
        return settings.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(
            f"{PREFIX}{str(problem['loc'][0]).upper()}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)
        )
        raise SettingsError(problems) from None


def load_or_exit(settings: type[SettingsT]) -> SettingsT:
    """Read the settings, or say what is wrong with them and leave with status 2."""
    try:
        return load(settings)
    except SettingsError as error:
        sys.stderr.write(f"settings: {error}\n")
        raise SystemExit(_EXIT_USAGE) from None


def _with_files(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with those of `…_FILE` filled in from their files."""
    result = dict(variables)
    for name, path in variables.items():
        if not (name.startswith(PREFIX) and name.endswith("_FILE")):
            continue
        target = name.removesuffix("_FILE")
        if target in _FILES_THEMSELVES:
            continue
        try:
            result[target] = Path(path).read_text(encoding="utf-8").removesuffix("\n")
        except OSError as error:
            raise SettingsError(f"{name}: {error.strerror}") from error
    return result
