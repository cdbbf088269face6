"""Whom Postgres runs as: itself refuses root, so root lends it an account without rights."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quotagate.stack.errors import StackError

# `postgres` is there where the machine has a Postgres; `nobody` is there always.
_ACCOUNTS = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """A user of the machine; `switch` False: ourselves, called by our number."""

    name: str
    uid: int
    gid: int
    switch: bool

    def run(self, command: Sequence[str | os.PathLike[str]]) -> "subprocess.CompletedProcess[str]":
        """Run a command as this user, from the root folder, and return what it said."""
        return subprocess.run(  # noqa: S603 - the commands are ours
            [os.fspath(part) for part in command],
            cwd="/",
            text=True,
            capture_output=True,
            check=False,
            user=self.uid if self.switch else None,
            group=self.gid if self.switch else None,
            extra_groups=[] if self.switch else None,
        )

    def can_enter(self, folder: Path) -> bool:
        """Tell whether this user may pass through all the folders of the path."""
        return not self.switch or self.run(["/bin/sh", "-c", 'cd "$0"', folder]).returncode == 0

    def give(self, path: Path) -> None:
        """Make this user the owner of a file or folder."""
        if self.switch:
            os.chown(path, self.uid, self.gid)


def for_postgres() -> Account:
    """Return the user that Postgres runs as: ourselves, unless we are root.

    Raises:
        StackError: we are root, and the machine has neither of the accounts.

    """
    if os.geteuid() != 0:
        return Account(str(os.geteuid()), os.geteuid(), os.getegid(), switch=False)
    for name in _ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, switch=True)
    raise StackError(f"Postgres refuses root, and there is no user {' or '.join(_ACCOUNTS)}")
