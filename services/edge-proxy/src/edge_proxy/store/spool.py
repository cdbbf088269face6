"""Records that the stream hasn't acknowledged, one file each, until it has."""

import re
from pathlib import Path

import msgspec

from contracts.contract import decode
from contracts.inference import InferenceRecord
from edge_proxy.errors import DataDirectoryError
from edge_proxy.store.files import UNFINISHED_SUFFIX, sync_directory, write_durably
from kit import log

_SUFFIX = ".json"
_SET_ASIDE_SUFFIX = ".unreadable"
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_logger = log.get(__name__)


def _file_name(message_id: str) -> str:
    return _NO_NAME.sub("_", message_id) + _SUFFIX


class Spool:
    """A folder of records. A record in it survives `kill -9` and a power cut."""

    def __init__(self, path: Path) -> None:
        """Open the folder; finish or drop what a crash left unfinished."""
        self._path = path
        for unfinished in path.glob(f"*{_SUFFIX}{UNFINISHED_SUFFIX}"):
            _finish(unfinished)
        # A dict for its order: the oldest first. Message ids sort by time.
        self._names = dict.fromkeys(sorted(file.name for file in path.glob(f"*{_SUFFIX}")))

    @property
    def depth(self) -> int:
        """How many records wait."""
        return len(self._names)

    @property
    def files(self) -> list[Path]:
        """The records' files, the oldest first."""
        return [self._path / name for name in self._names]

    def __contains__(self, message_id: str) -> bool:
        return _file_name(message_id) in self._names

    def keep(self, message_id: str, payload: bytes) -> None:
        """Keep a record; it is on the disk when this returns. Keeping it twice changes nothing.

        Raises:
            DataDirectoryError: it couldn't be written.

        """
        name = _file_name(message_id)
        try:
            write_durably(self._path / name, payload)
        except OSError as error:
            raise DataDirectoryError(f"spool: {error.strerror}") from error
        self._names[name] = None

    def oldest(self) -> tuple[str, InferenceRecord] | None:
        """Return the oldest record and the name to remove it by; None: nothing waits.

        A file that is no record is set aside, logged, and never stands in the way of the others.
        """
        while self._names:
            name = next(iter(self._names))
            try:
                return name, decode((self._path / name).read_bytes(), InferenceRecord)
            except (OSError, msgspec.DecodeError) as error:
                self._set_aside(name, error)
        return None

    def remove(self, name: str) -> None:
        """Forget a record that the stream has acknowledged.

        Should the removal be lost in a crash, the record is published again under the same id.
        """
        (self._path / name).unlink(missing_ok=True)
        self._names.pop(name, None)

    def take_over(self, theirs: "Spool") -> None:
        """Move the records of another spool here.

        Raises:
            DataDirectoryError: they couldn't be moved.

        """
        try:
            for file in theirs.files:
                file.replace(self._path / file.name)
                self._names[file.name] = None
            sync_directory(self._path)
        except OSError as error:
            raise DataDirectoryError(f"spool: {error.strerror}") from error

    def _set_aside(self, name: str, error: Exception) -> None:
        file = self._path / name
        _logger.error("spooled record is unreadable", file=name, error=type(error).__name__)
        if file.exists():
            file.replace(file.with_name(name + _SET_ASIDE_SUFFIX))
        self._names.pop(name, None)


def _finish(unfinished: Path) -> None:
    """Give a file that lacks only its name its name, and drop one that lacks more.

    What is dropped was never promised to anyone; its dispatch is still in the journal.
    """
    try:
        decode(unfinished.read_bytes(), InferenceRecord)
    except msgspec.DecodeError:
        unfinished.unlink()
    else:
        unfinished.replace(unfinished.with_name(unfinished.name.removesuffix(UNFINISHED_SUFFIX)))
