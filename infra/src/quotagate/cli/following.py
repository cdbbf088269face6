"""Follows log files that the supervisor writes and now and then begins anew."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

_POLL_S = 0.2


class _Tail:
    """The end of one file; only whole lines come out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = path.stat().st_ino
        self._offset = path.stat().st_size
        self._rest = b""

    def lines(self) -> list[str]:
        """Return the lines that came since the last call."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return []
        if found.st_ino != self._inode or found.st_size < self._offset:
            self._inode, self._offset, self._rest = found.st_ino, 0, b""
        if found.st_size == self._offset:
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode(errors="replace") for line in lines]


def _pause() -> None:
    time.sleep(_POLL_S)


def follow(
    files: Mapping[str, Path], pause: Callable[[], None] = _pause
) -> Iterator[tuple[str, str]]:
    """Yield each new line with its file's name, for ever; `pause` comes between two looks."""
    tails = {name: _Tail(path) for name, path in files.items()}
    while True:
        for name, tail in tails.items():
            for line in tail.lines():
                yield name, line
        pause()
