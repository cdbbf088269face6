"""Dispatches under way, so that a crash leaves unknown spend and not invisible spend.

One line when an attempt is dispatched, one when its record is safe:

    +<the record that applies if nothing else is heard of it: outcome `unknown`>
    -<its message id>

Lines go to the kernel before the dispatch, without waiting for the disk: they survive the death of
the process at any moment, `kill -9` included, not a power cut (which the provider's own records
would have to settle; waiting for the disk here would cost every call about a millisecond).
"""

import errno
import os
from collections.abc import Collection
from pathlib import Path

import msgspec
from prometheus_client import Counter

from contracts.contract import decode, encode
from contracts.inference import InferenceRecord
from edge_proxy.errors import DataDirectoryError

_FAILURES = Counter(
    "quotagate_journal_failures_total", "Entries of the dispatch journal that weren't written."
)
_FULL = "the disk is full"
_COMPACT_AT_BYTES = 4 * 1024**2


class Journal:
    """The journal of this process."""

    def __init__(self, path: Path, compact_at_bytes: int = _COMPACT_AT_BYTES) -> None:
        """Begin an empty journal at `path`."""
        self._path = path
        self._compact_at_bytes = compact_at_bytes
        self._open: dict[str, bytes] = {}
        self._size_bytes = 0
        self._torn = False
        self._descriptor = _create(path)

    @property
    def under_way(self) -> int:
        """How many attempts have begun and not ended."""
        return len(self._open)

    def begin(self, unknown: InferenceRecord) -> None:
        """Note an attempt that is about to be dispatched, as the record of a silent death.

        Raises:
            DataDirectoryError: it couldn't be noted, so it must not be dispatched.

        """
        line = b"+" + encode(unknown) + b"\n"
        self._append(line)
        self._open[unknown.message_id] = line

    def end(self, message_id: str) -> None:
        """Note that an attempt's record is safe: acknowledged by the stream, or spooled.

        Raises:
            DataDirectoryError: it couldn't be noted; a restart will publish the attempt as
                unknown under the id of the record that is safe, which changes nothing.

        """
        self._open.pop(message_id, None)
        self._append(b"-" + message_id.encode() + b"\n")
        # With nothing under way an empty file says the same; otherwise a large one is worth
        # copying what is open.
        if self._size_bytes > self._compact_at_bytes or (not self._open and self._is_worthwhile()):
            self._compact()

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _is_worthwhile(self) -> bool:
        return self._size_bytes > self._compact_at_bytes // 16

    def _append(self, line: bytes) -> None:
        if self._torn:
            line = b"\n" + line
        try:
            written = os.write(self._descriptor, line)
        except OSError as error:
            raise _failure(error.strerror) from error
        self._size_bytes += written
        self._torn = written < len(line)
        if self._torn:
            # The reader skips what isn't whole; the next line begins on its own.
            raise _failure(_FULL)

    def _compact(self) -> None:
        """Begin a new file with what is open; it takes the old one's place when it is whole."""
        successor = self._path.with_name(self._path.name + ".new")
        content = b"".join(self._open.values())
        descriptor = _create(successor)
        try:
            _write_whole(descriptor, content)
            successor.replace(self._path)
        except OSError as error:
            os.close(descriptor)
            raise _failure(error.strerror) from error
        os.close(self._descriptor)
        self._descriptor = descriptor
        self._size_bytes = len(content)
        self._torn = False


def close_left_open(path: Path, message_ids: Collection[str]) -> None:
    """Note in a dead process's journal that these records are safe; on the disk when it returns.

    Raises:
        OSError: it couldn't be written.

    """
    # Begins on a line of its own: the last one may have been cut off.
    lines = b"".join(b"\n-" + message_id.encode() for message_id in message_ids)
    with path.open("ab") as file:
        file.write(lines + b"\n")
        file.flush()
        os.fsync(file.fileno())


def left_open(path: Path) -> list[InferenceRecord]:
    """Return the records of the attempts that a dead process had begun and not ended.

    A last line that was cut off is skipped: its attempt wasn't dispatched yet. No file: none.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    begun: dict[str, InferenceRecord] = {}
    for line in lines:
        if line.startswith(b"-"):
            begun.pop(line[1:].decode("utf-8", "replace"), None)
        elif line.startswith(b"+"):
            try:
                record = decode(line[1:], InferenceRecord)
            except msgspec.DecodeError:
                continue
            begun[record.message_id] = record
    return list(begun.values())


def _create(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except OSError as error:
        raise _failure(error.strerror) from error


def _write_whole(descriptor: int, content: bytes) -> None:
    if os.write(descriptor, content) < len(content):
        raise OSError(errno.ENOSPC, _FULL)


def _failure(reason: str | None) -> DataDirectoryError:
    _FAILURES.inc()
    return DataDirectoryError(f"journal: {reason}")
