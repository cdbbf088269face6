"""One folder per edge process under the data directory, claimed by a lock that dies with it.

    <data dir>/<claim id>/lock      held (flock) for as long as the process lives
                         /journal   dispatches under way
                         /spool/    records that the stream hasn't acknowledged

A folder whose lock nobody holds belonged to a process that is gone; whoever claims it takes over
what it left. A folder is born and dies under a name that starts with a dot, and has its own only
while its lock matters, so nobody takes a newborn for an orphan.
"""

import fcntl
import os
import shutil
from pathlib import Path

from edge_proxy.errors import DataDirectoryError
from kit.ids import new_id

_LOCK = "lock"


class Claim:
    """A folder that this process holds the lock of."""

    def __init__(self, path: Path, descriptor: int) -> None:
        """Hold a folder by the open, locked `descriptor` of its lock file."""
        self.path = path
        self._descriptor = descriptor

    @property
    def journal(self) -> Path:
        """The file of the dispatch journal."""
        return self.path / "journal"

    @property
    def spool(self) -> Path:
        """The folder of the spool."""
        return self.path / "spool"

    def release(self) -> None:
        """Let others claim the folder, with what is in it."""
        os.close(self._descriptor)

    def remove(self) -> None:
        """Remove the folder, whose content must have been taken over, and release it."""
        dying = self.path.rename(self.path.with_name(f".{self.path.name}"))
        shutil.rmtree(dying)
        self.release()


def claim_new(data_dir: Path) -> Claim:
    """Make a folder and claim it.

    Raises:
        DataDirectoryError: the data directory can't be written.

    """
    claim_id = new_id()
    newborn = data_dir / f".{claim_id}"
    try:
        (newborn / "spool").mkdir(parents=True)
        descriptor = os.open(newborn / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path = newborn.rename(data_dir / claim_id)
    except OSError as error:
        raise DataDirectoryError(f"data directory: {error.strerror}") from error
    return Claim(path, descriptor)


def claim_orphans(data_dir: Path) -> list[Claim]:
    """Claim every folder whose process is gone.

    Raises:
        DataDirectoryError: the data directory can't be read.

    """
    try:
        folders = [path for path in data_dir.iterdir() if not path.name.startswith(".")]
        claims = [_claim(path) for path in sorted(folders)]
    except OSError as error:
        raise DataDirectoryError(f"data directory: {error.strerror}") from error
    return [claim for claim in claims if claim is not None]


def _claim(path: Path) -> Claim | None:
    """Claim one folder; None: its process lives, or another was quicker."""
    try:
        descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    if not _is_still(path / _LOCK, descriptor):
        # Another process claimed and removed it between our open and our lock.
        os.close(descriptor)
        return None
    return Claim(path, descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
