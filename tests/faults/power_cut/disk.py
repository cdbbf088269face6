"""A file system in a file, mounted through a loop device.

What was written but not synced is in the memory of the kernel and not in the file. So a copy of the
file is what a power cut leaves behind: mounted, its journal is recovered as after one.
"""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

_SIZE_BYTES = 96 * 1024**2
_TRIES = 20


class NoLoopDeviceError(Exception):
    """This machine doesn't let us mount a file."""


@contextlib.contextmanager
def mounted(image: Path, at: Path) -> Iterator[Path]:
    """Mount a file system, recovered if need be.

    Raises:
        NoLoopDeviceError: it can't be mounted here.

    """
    at.mkdir(exist_ok=True)
    _run("mount", "-t", "ext4", "-o", "loop", str(image), str(at))
    try:
        yield at
    finally:
        _run("umount", "--lazy", str(at))


def make(image: Path) -> None:
    """Make an empty file system in a file.

    Raises:
        NoLoopDeviceError: we are not root, or there is no ext4 here.

    """
    if os.geteuid() != 0:
        raise NoLoopDeviceError("only root may mount a file")
    with image.open("wb") as file:
        file.truncate(_SIZE_BYTES)
    _run("mkfs.ext4", "-q", str(image))


def cut(image: Path, taken: Path) -> None:
    """Take the content of a disk as a power cut would leave it at this moment.

    Its writers must be stopped. What the kernel writes by itself meanwhile would mix two moments,
    so then the copy is taken anew.
    """
    for _ in range(_TRIES):
        before = image.stat().st_mtime_ns
        shutil.copyfile(image, taken)
        if image.stat().st_mtime_ns == before:
            return
        time.sleep(0.1)
    raise TimeoutError("the kernel doesn't stop writing")


def _run(program: str, *arguments: str) -> None:
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise NoLoopDeviceError(f"there is no {program}")
    answer = subprocess.run(  # noqa: S603 - the commands are ours
        [found, *arguments], capture_output=True, text=True, check=False
    )
    if answer.returncode != 0:
        raise NoLoopDeviceError(f"{program}: {answer.stderr.strip()}")
