"""A copy of the code, with a bug in it, that runs in place of the code."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from faults.bugs.bug import Bug, Edit

ROOT = Path(__file__).parents[3]
_PARTS = ("shared", "lua", "infra", "services", "tests")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc")


class StaleEditError(Exception):
    """The text that a bug would change doesn't stand in its file exactly once."""

    def __init__(self, edit: Edit, count: int) -> None:
        super().__init__(f"{edit.path} has {count} times: {edit.right!r}")


def edited(edit: Edit, root: Path = ROOT) -> str:
    """Return a file's text with an edit.

    Raises:
        StaleEditError: the code has changed; write the bug anew.

    """
    text = (root / edit.path).read_text(encoding="utf-8")
    if text.count(edit.right) != 1:
        raise StaleEditError(edit, text.count(edit.right))
    return text.replace(edit.right, edit.wrong)


def make(bug: Bug, folder: Path) -> Mapping[str, str]:
    """Copy the code to a folder with the bug in it; return the environment that runs it."""
    shutil.rmtree(folder, ignore_errors=True)
    for part in _PARTS:
        shutil.copytree(ROOT / part, folder / part, ignore=_LEFT_OUT)
    for edit in bug.edits:
        (folder / edit.path).write_text(edited(edit, folder), encoding="utf-8")
    sources = ["shared/src", "lua", "infra/src", "infra/fake-provider/src", "tests"]
    paths = [folder / source for source in sources]
    paths += sorted((folder / "services").glob("*/src"))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(str(path) for path in paths)}
