"""Which Postgres is taken, shown with programs that only say a version."""

import os
from pathlib import Path

import pytest

from quotagate.stack import postgres_binaries
from quotagate.stack.errors import NoBinaryError
from quotagate.stack.unprivileged import Account

OURSELVES = Account("ourselves", os.geteuid(), os.getegid(), switch=False)


def _install(folder: Path, version: str, *, script: str = "") -> Path:
    folder.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        program = folder / name
        says = script or f"echo 'postgres (PostgreSQL) {version}'"
        program.write_text(f"#!/bin/sh\n{says}\n")
        program.chmod(0o755)
    return folder


def test_the_named_one_is_taken(tmp_path: Path) -> None:
    named = _install(tmp_path / "a b" / "bin", "17.4")
    found = postgres_binaries.find(OURSELVES, tmp_path, {postgres_binaries.VARIABLE: str(named)})
    assert (found.folder, found.major) == (named, 17)


@pytest.mark.parametrize(
    ("version", "script", "reason"),
    [
        pytest.param("14.9", "", "version 14 is older than 15", id="too old"),
        pytest.param("", "echo libxml2 is missing >&2; exit 127", "libxml2", id="can't run here"),
        pytest.param("", "echo hello", "hello", id="something else"),
    ],
)
def test_a_named_one_that_will_not_do_is_an_error_that_says_why(
    tmp_path: Path, version: str, script: str, reason: str
) -> None:
    named = _install(tmp_path / "bin", version, script=script)
    with pytest.raises(NoBinaryError, match=reason):
        postgres_binaries.find(OURSELVES, tmp_path, {postgres_binaries.VARIABLE: str(named)})


def test_a_named_folder_without_postgres_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(NoBinaryError, match="nothing-here"):
        postgres_binaries.find(
            OURSELVES, tmp_path, {postgres_binaries.VARIABLE: str(tmp_path / "nothing-here")}
        )


def test_the_machine_s_is_taken_where_the_packages_do_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "lib" / "postgresql"
    for version in (9, 14, 15, 17):
        _install(machine / str(version) / "bin", f"{version}.1")
    monkeypatch.setattr(postgres_binaries, "package_folder", lambda _name: None)
    monkeypatch.setattr(postgres_binaries, "_MACHINE_FOLDERS", (f"{machine}/*/bin",))
    found = postgres_binaries.find(OURSELVES, tmp_path, {})
    assert found.folder == machine / "17" / "bin"
