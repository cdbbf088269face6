"""A child process that is killed at any moment while it writes."""

import signal
import subprocess
import sys
from pathlib import Path


def killed_while_writing(program: str, folder: Path, until_lines: int) -> list[str]:
    """Run a program that prints a line for each thing it promises, and kill it in the middle.

    Returns the lines it had printed in full.
    """
    with subprocess.Popen(  # noqa: S603 # a program of this test
        [sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(until_lines)]
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.read().splitlines(keepends=True)
    return [line.strip() for line in lines if line.endswith("\n")]
