"""Write docs/settings.md from the settings classes: `python -m quotagate.settings_page`."""

import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType, ModuleType

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from kit.settings import PREFIX, ServiceSettings
from quotagate.cli.local import DIRECTORY_VARIABLE
from quotagate.cli.setup import DemoSettings, MigrateSettings
from quotagate.stack import binaries, ports, postgres_binaries
from quotagate.stores import StoreSettings

_SERVICES = (
    "edge_proxy",
    "admission",
    "tier_cache",
    "settlement",
    "control_plane",
    "fake_provider",
)

_COMMANDS: Mapping[str, type[ServiceSettings]] = MappingProxyType(
    {
        "quotagate migrate": MigrateSettings,
        "quotagate demo": DemoSettings,
        "quotagate verify": StoreSettings,
    }
)

Row = tuple[str, str, str]
"""The variable, its default and its meaning, as they stand in a table."""

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
    return f"`{value}`" if value not in {None, "", ()} else "*none*"


def _table(title: str, rows: Iterable[Row]) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield "| variable | default | meaning |"
    yield "| --- | --- | --- |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _settings(settings: type[BaseModel], leave_out: frozenset[str] = frozenset()) -> Iterator[Row]:
    for name, field in settings.model_fields.items():
        if not field.description:
            raise LookupError(f"{settings.__module__}: the setting {name} has no description")
        if name not in leave_out:
            yield f"`{PREFIX}{name.upper()}`", _default(field), field.description


def _services() -> Iterator[str]:
    for service in _SERVICES:
        settings = settings_class(importlib.import_module(f"{service}.settings"))
        yield from _table(service.replace("_", "-"), _settings(settings))


def _commands() -> Iterator[str]:
    # What every process has, but a command that ends doesn't use.
    unused = frozenset(ServiceSettings.model_fields)
    for command, settings in _COMMANDS.items():
        yield from _table(command, _settings(settings, leave_out=unused))


def _stack() -> Iterator[Row]:
    yield f"`{DIRECTORY_VARIABLE}`", "`.quotagate`", "The stack's folder: state, logs, data."
    for name, port in ports.DEFAULTS.items():
        default = f"`{port}` or the next free"
        yield f"`{ports.variable(name)}`", default, f"Port of {name} on 127.0.0.1."
    programs = {
        binaries.NATS_VARIABLE: "The NATS server to run.",
        binaries.VALKEY_VARIABLE: "The Valkey or Redis server to run.",
        postgres_binaries.VARIABLE: "The folder of `postgres` and `initdb` to run.",
    }
    for variable, meaning in programs.items():
        yield f"`{variable}`", "the package's", meaning


def page() -> str:
    """Return the whole page."""
    stack = _table("quotagate up: the stack on one machine", _stack())
    return _HEAD + "\n".join((*_services(), *_commands(), *stack)) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
