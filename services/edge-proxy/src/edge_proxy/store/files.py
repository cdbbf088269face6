"""Files that survive: written whole or not at all, and on the disk before anyone is told."""

import os
from pathlib import Path

UNFINISHED_SUFFIX = ".unfinished"


def write_durably(path: Path, content: bytes) -> None:
    """Write a file so that it is complete and on the disk when this returns.

    A crash on the way leaves the file under its name with `.unfinished`, or whole.

    Raises:
        OSError: it couldn't be written.

    """
    unfinished = path.with_name(path.name + UNFINISHED_SUFFIX)
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Put a directory's names on the disk.

    Raises:
        OSError: it couldn't be synced.

    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
