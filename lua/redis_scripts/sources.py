"""Finds the scripts: beside this package in a wheel, above it in the tree.

What several scripts share is a part: a line `-- part: parts/<name>.lua` of a script stands for that
file's text.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = Path(__file__).parent
_PART = re.compile(r"^ *-- part: (parts/[a-z_]+\.lua)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    """One Lua script; `sha` is the SHA-1 of its text, by which the server knows it."""

    name: str
    text: str
    sha: str


def load(name: str) -> Script:
    """Read `name`.lua and its parts.

    Raises:
        FileNotFoundError: there is no such script, or no such part.

    """
    text = _PART.sub(lambda found: _read(found[1]), _read(f"{name}.lua"))
    # The server's name for a script, no protection of anything.
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(name, text, sha)


def _read(file: str) -> str:
    beside = _PACKAGE / file
    path = beside if beside.exists() else _PACKAGE.parent / file
    return path.read_text(encoding="utf-8")
