"""Named points at which a test has a process die, to see what survives there.

A test names a folder in `QUOTAGATE_CRASH_AT` and arms a point by making a file of its name in it.
The first process that passes an armed point takes the file away, so that it dies once, and kills
itself: no `finally`, no grace, as `kill -9` would. Without the variable a point does nothing.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path

_VARIABLE = "QUOTAGATE_CRASH_AT"


def _pass(_point: str) -> None:
    return


def _crash_in(folder: Path) -> Callable[[str], None]:
    def crash(point: str) -> None:
        try:
            (folder / point).unlink()
        except FileNotFoundError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    return crash


_folder = os.environ.get(_VARIABLE)
crash_at: Callable[[str], None] = _crash_in(Path(_folder)) if _folder else _pass
"""Die here if this point is armed."""
