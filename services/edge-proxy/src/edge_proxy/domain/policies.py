"""The policies file: which endpoints are protected against abuse, beyond what tiers limit.

    [policies.Chat]
    endpoints = ["POST /v1/chat/completions", "POST /v1/messages"]
    windows = [
        { label = "Minute", limit = 100, seconds = 60 },
        { label = "Day", limit = 10_000, seconds = 86_400 },
    ]
    address_windows = [{ label = "Minute", limit = 20, seconds = 60 }]
    on_store_failure = "open"
    shadow = false

Each API key has the windows of its own, and so has each address of callers without a valid key, who
meet `address_windows` where they are given. All endpoints of a policy are counted together.
"""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contracts.windows import Window
from edge_proxy.errors import PoliciesError

_US_PER_S = 1_000_000
# What one message to admission may hold.
_MAX_WINDOWS = 32

# A part of a header's name; without a hyphen, so that two names can't be written alike.
_Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9]{1,32}$")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _WindowSection(_Section):
    label: _Token
    limit: Annotated[int, Field(ge=1, le=1_000_000)]
    seconds: Annotated[int, Field(ge=1, le=366 * 86_400)]


class _PolicySection(_Section):
    endpoints: Annotated[list[str], Field(min_length=1)]
    windows: list[_WindowSection]
    address_windows: list[_WindowSection] | None = None
    on_store_failure: Literal["open", "closed"] = "open"
    shadow: bool = False


class _File(_Section):
    policies: dict[_Token, _PolicySection]


@dataclass(frozen=True, slots=True)
class Windows:
    """What one kind of caller meets at an endpoint."""

    windows: tuple[Window, ...] = ()
    closed: bool = False
    """Whether a request that nobody can judge is refused; by default it isn't."""

    def __bool__(self) -> bool:
        """Return whether there is anything to judge."""
        return bool(self.windows)


@dataclass(frozen=True, slots=True)
class EndpointPolicy:
    """Everything that policies say of one endpoint."""

    keys: Windows = Windows()
    addresses: Windows = Windows()
    """For callers without a valid key."""


NO_POLICY = EndpointPolicy()
Policies = Mapping[str, EndpointPolicy]
"""By method and path, as in `POST /v1/messages`."""


def parse(text: str, endpoints: Collection[str]) -> Policies:
    """Read a policies file; `endpoints` are those there are.

    Raises:
        PoliciesError: names the path of what is wrong.

    """
    try:
        file = _File.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise PoliciesError(f"not TOML: {error}") from None
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_input=False, include_url=False)
        )
        raise PoliciesError(problems) from None
    _check_names(file)
    policies: dict[str, EndpointPolicy] = {}
    for group, section in file.policies.items():
        where = f"policies.{group}"
        keys = _windows(group, section, section.windows, f"{where}.windows")
        addresses = keys
        if section.address_windows is not None:
            where_from = f"{where}.address_windows"
            addresses = _windows(group, section, section.address_windows, where_from)
        for endpoint in section.endpoints:
            if endpoint not in endpoints:
                known = ", ".join(sorted(endpoints))
                raise PoliciesError(f"{where}.endpoints: {endpoint!r} is none of {known}")
            before = policies.get(endpoint, NO_POLICY)
            policies[endpoint] = EndpointPolicy(
                _both(before.keys, keys, endpoint), _both(before.addresses, addresses, endpoint)
            )
    return policies


def _check_names(file: _File) -> None:
    """Refuse what would be one header, or one endpoint counted twice."""
    groups = [group.lower() for group in file.policies]
    for group, section in file.policies.items():
        if groups.count(group.lower()) > 1:
            raise PoliciesError(f"policies.{group}: another one differs in case only")
        if len(set(section.endpoints)) < len(section.endpoints):
            raise PoliciesError(f"policies.{group}.endpoints: one of them stands there twice")


def _windows(
    group: str, policy: _PolicySection, sections: list[_WindowSection], where: str
) -> Windows:
    labels = [section.label.lower() for section in sections]
    if len(set(labels)) < len(labels):
        raise PoliciesError(f"{where}: labels must differ in more than case")
    by_length = sorted(sections, key=lambda section: section.seconds)
    for shorter, longer in pairwise(by_length):
        if longer.seconds == shorter.seconds or longer.limit <= shorter.limit:
            raise PoliciesError(
                f"{where}: beside {longer.label!r}, {shorter.label!r} would never refuse"
            )
    windows = (
        Window(
            group=group,
            label=section.label,
            limit=section.limit,
            length_us=section.seconds * _US_PER_S,
            shadow=policy.shadow,
        )
        for section in sections
    )
    return Windows(tuple(windows), bool(sections) and policy.on_store_failure == "closed")


def _both(some: Windows, more: Windows, endpoint: str) -> Windows:
    windows = (*some.windows, *more.windows)
    if len(windows) > _MAX_WINDOWS:
        raise PoliciesError(f"policies: more than {_MAX_WINDOWS} windows at {endpoint}")
    return Windows(windows, some.closed or more.closed)
