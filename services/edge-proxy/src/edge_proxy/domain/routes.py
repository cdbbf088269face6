"""The routes file: which providers there are, and to which of them each model goes.

    [providers.openai]
    adapter = "openai"
    base_url = "https://api.openai.com/v1"
    api_key_env = "OPENAI_API_KEY"

    [models."gpt-4o"]
    deployments = [{ provider = "openai", model = "gpt-4o" }]
    retry = { attempts = 2 }

`${NAME}` in a `base_url` or a `proxy` stands for a variable of the environment. Keys are never
written here: `api_key_env` names a variable, `api_key_file` a file. `ca_file` names a file with the
certificates of the authorities that vouch for a private provider, in the place of those that this
machine trusts. `timeouts` may stand at a
provider, a model and a deployment, each overruling the one before; `retry` in the file and at a
model.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contracts.admission import Deployment
from edge_proxy.domain.adapters import ADAPTERS
from edge_proxy.domain.adapters.adapter import Adapter, Traits
from edge_proxy.domain.endpoints import Endpoint
from edge_proxy.domain.retries import Named, RetryPolicy, Status
from edge_proxy.domain.surroundings import Surroundings
from edge_proxy.errors import RoutesError

Seconds = Annotated[float, Field(gt=0)]
Name = Annotated[str, Field(min_length=1, max_length=256)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _TimeOutSection(_Section):
    first_byte_s: Seconds | None = None
    idle_s: Seconds | None = None
    total_s: Seconds | None = None


class _RetrySection(_Section):
    attempts: Annotated[int, Field(ge=1, le=10)] | None = None
    on: list[Named | Status] | None = None
    fall_back_on: list[Named | Status] | None = None
    backoff_ms: Annotated[int, Field(ge=1, le=60_000)] | None = None
    backoff_max_ms: Annotated[int, Field(ge=1, le=60_000)] | None = None
    wait_s: Annotated[float, Field(ge=0)] | None = None
    total_s: Seconds | None = None

    def stated(self) -> dict[str, Any]:
        """Return what it says, as the policy's fields."""
        said: dict[str, Any] = self.model_dump(exclude_none=True)
        for name in ("on", "fall_back_on"):
            causes = getattr(self, name)
            if causes is not None:
                said[name] = frozenset(map(str, causes))
        return said


class _ProviderSection(_Section):
    adapter: str
    base_url: str
    api_key_env: Name | None = None
    api_key_file: Name | None = None
    supports_stream_usage: bool = True
    reasoning_outside_output: bool = False
    connect_s: Seconds = 5.0
    proxy: str | None = None
    ca_file: Name | None = None
    timeouts: _TimeOutSection = _TimeOutSection()


class _DeploymentSection(_Section):
    provider: Name
    model: Name
    timeouts: _TimeOutSection = _TimeOutSection()


class _ModelSection(_Section):
    deployments: Annotated[list[_DeploymentSection], Field(min_length=1)]
    timeouts: _TimeOutSection = _TimeOutSection()
    retry: _RetrySection = _RetrySection()


class _File(_Section):
    retry: _RetrySection = _RetrySection()
    providers: dict[Name, _ProviderSection]
    models: dict[Name, _ModelSection]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOuts:
    """How long one attempt may take, in seconds of our monotonic clock."""

    first_byte_s: float = 300.0
    """From the dispatch to the answer's head, which without a stream comes with its end."""
    idle_s: float = 120.0
    """Between two pieces of the answer."""
    total_s: float = 900.0
    """From the dispatch to the answer's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider that attempts can go to."""

    name: str
    adapter: Adapter
    base_url: str
    """Without a slash at its end."""
    api_key: str = field(repr=False)
    """Empty: the provider asks for none."""
    connect_s: float
    proxy: str | None = field(repr=False)
    """None: no proxy, whatever the environment says."""
    ca_pem: str | None = field(default=None, repr=False)
    """The only certificates that vouch for it; None: those that this machine trusts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One deployment of a route: where one attempt goes."""

    provider: Provider
    model: str
    """The provider's name of the model."""
    timeouts: TimeOuts


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A model that clients can ask for, and its deployments in the order of preference."""

    model: str
    targets: tuple[Target, ...]
    deployments: tuple[Deployment, ...]
    """The targets as admission knows them, in the same order."""
    retry: RetryPolicy

    def serves(self, endpoint: Endpoint) -> bool:
        """Say whether any target serves an endpoint."""
        return any(endpoint.path in target.provider.adapter.apis for target in self.targets)

    def at(self, endpoint: Endpoint) -> "Route":
        """Return the route less the targets that don't serve an endpoint."""
        targets = tuple(
            target for target in self.targets if endpoint.path in target.provider.adapter.apis
        )
        if len(targets) == len(self.targets):
            return self
        deployments = tuple(
            Deployment(provider=target.provider.name, model=target.model) for target in targets
        )
        return replace(self, targets=targets, deployments=deployments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """The whole file."""

    providers: Mapping[str, Provider]
    models: Mapping[str, Route]


def parse(text: str, surroundings: Surroundings) -> Routes:
    """Read a routes file.

    Raises:
        RoutesError: names the path of what is wrong, never a secret.

    """
    try:
        file = _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise RoutesError(f"not TOML: {error}") from None
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)
        )
        raise RoutesError(problems) from None
    providers = {
        name: _provider(name, section, surroundings) for name, section in file.providers.items()
    }
    models = {name: _route(name, section, file, providers) for name, section in file.models.items()}
    return Routes(providers=providers, models=models)


def _provider(name: str, section: _ProviderSection, surroundings: Surroundings) -> Provider:
    where = f"providers.{name}"
    new_adapter = ADAPTERS.get(section.adapter)
    if new_adapter is None:
        raise RoutesError(f"{where}.adapter: must be one of {', '.join(sorted(ADAPTERS))}")
    base_url = surroundings.expand(section.base_url, f"{where}.base_url").rstrip("/")
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise RoutesError(f"{where}.base_url: must be an http or https address without a query")
    return Provider(
        name=name,
        adapter=new_adapter(
            Traits(
                stream_usage=section.supports_stream_usage,
                reasoning_outside_output=section.reasoning_outside_output,
            )
        ),
        base_url=base_url,
        api_key=surroundings.api_key(section.api_key_env, section.api_key_file, where),
        connect_s=section.connect_s,
        proxy=section.proxy and surroundings.expand(section.proxy, f"{where}.proxy"),
        ca_pem=surroundings.authorities(section.ca_file, f"{where}.ca_file"),
    )


def _route(
    name: str, section: _ModelSection, file: _File, providers: Mapping[str, Provider]
) -> Route:
    targets = []
    for index, deployment in enumerate(section.deployments):
        provider = providers.get(deployment.provider)
        if provider is None:
            where = f"models.{name}.deployments.{index}.provider"
            raise RoutesError(f"{where}: there is no provider {deployment.provider!r}")
        sections = (
            file.providers[deployment.provider].timeouts,
            section.timeouts,
            deployment.timeouts,
        )
        stated: dict[str, float] = {}
        for one in sections:
            stated |= one.model_dump(exclude_none=True)
        targets.append(
            Target(provider=provider, model=deployment.model, timeouts=TimeOuts(**stated))
        )
    return Route(
        model=name,
        targets=tuple(targets),
        deployments=tuple(
            Deployment(provider=target.provider.name, model=target.model) for target in targets
        ),
        retry=replace(RetryPolicy(), **file.retry.stated() | section.retry.stated()),
    )
