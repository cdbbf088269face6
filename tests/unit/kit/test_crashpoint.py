import signal
import subprocess
import sys
from pathlib import Path

import pytest

_PASS = "from kit.crashpoint import crash_at; crash_at('here'); print('alive')"


def _run(**variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-c", _PASS], env=variables, capture_output=True, text=True, check=False
    )


def test_an_armed_point_kills_once(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    assert _run(QUOTAGATE_CRASH_AT=str(tmp_path)).returncode == -signal.SIGKILL
    assert _run(QUOTAGATE_CRASH_AT=str(tmp_path)).stdout == "alive\n"


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({}, id="no folder is named"),
        pytest.param({"QUOTAGATE_CRASH_AT": "/nowhere"}, id="the folder isn't there"),
    ],
)
def test_a_point_that_is_not_armed_does_nothing(tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / "elsewhere").touch()
    assert _run(**variables).stdout == "alive\n"
