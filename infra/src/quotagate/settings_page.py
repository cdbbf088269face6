"""Write docs/settings.md from the settings classes: `python -m quotagate.settings_page`."""

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from kit.settings import PREFIX, ServiceSettings

_SERVICES = (
    "edge_proxy",
    "admission",
    "tier_cache",
    "settlement",
    "control_plane",
    "fake_provider",
)

_HEAD = """# Settings

Generated from the settings classes; do not edit. `make docs` writes it again.

Every process reads its settings once, at its start, from the environment. Each may instead be the
content of a file: `QUOTAGATE_X_FILE=/run/secrets/x` stands for `QUOTAGATE_X`. A wrong or missing
one ends the start with status 2 and names the variable, never its value.
"""


def settings_class(module: ModuleType) -> type[ServiceSettings]:
    """Return the one settings class that a service's `settings` module defines."""
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, ServiceSettings)
        and value.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise LookupError(f"{module.__name__} defines {len(found)} settings classes, not one")
    return found[0]


def _default(field: FieldInfo) -> str:
    value = field.get_default()
    if value is PydanticUndefined:
        return "*required*"
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    return f"`{value}`" if value not in {None, ""} else "*none*"


def _section(service: str) -> Iterator[str]:
    settings = settings_class(importlib.import_module(f"{service}.settings"))
    yield f"\n## {service.replace('_', '-')}\n"
    yield "| variable | default | meaning |"
    yield "| --- | --- | --- |"
    for name, field in settings.model_fields.items():
        if not field.description:
            raise LookupError(f"{service}: the setting {name} has no description")
        yield f"| `{PREFIX}{name.upper()}` | {_default(field)} | {field.description} |"


def page() -> str:
    """Return the whole page."""
    return _HEAD + "\n".join(line for service in _SERVICES for line in _section(service)) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
