"""A program that runs with timer slack."""

import subprocess
import sys

import pytest

from quotagate.stack import timer_slack

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a setting of Linux's")


def _run(slack_us: int, *program: str) -> "subprocess.CompletedProcess[str]":
    command = [*timer_slack.before(slack_us), *program]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours


def test_the_program_takes_the_place_of_the_one_that_set_it() -> None:
    assert _run(1500, "/bin/cat", "/proc/self/timerslack_ns").stdout == "1500000\n"


def test_its_arguments_arrive_as_they_are() -> None:
    assert _run(1, "/bin/echo", "a  b", "$HOME", "").stdout == "a  b $HOME \n"


def test_a_program_that_does_not_exist_is_an_error() -> None:
    ended = _run(1, "/nowhere/to be found")
    assert ended.returncode != 0
    assert "FileNotFoundError" in ended.stderr
