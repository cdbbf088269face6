"""Finds the scripts: beside this package in a wheel, above it in the tree."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Script:
    """One Lua script; `sha` is the SHA-1 of its text, by which the server knows it."""

    name: str
    text: str
    sha: str


def load(name: str) -> Script:
    """Read `name`.lua.

    Raises:
        FileNotFoundError: there is no such script.

    """
    file = f"{name}.lua"
    beside = _PACKAGE / file
    path = beside if beside.exists() else _PACKAGE.parent / file
    text = path.read_text(encoding="utf-8")
    # The server's name for a script, no protection of anything.
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(name, text, sha)
