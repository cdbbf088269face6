"""A command as an operator runs it: a process of its own, and what it says."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


async def run_command(*arguments: str, environment: Mapping[str, str] | None = None) -> Answer:
    """Run `quotagate` with these of its variables and no others."""
    clean = {name: value for name, value in os.environ.items() if "QUOTAGATE" not in name}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "quotagate", *arguments),
        env=clean | dict(environment or {}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert b"Traceback" not in err, err.decode()
    assert process.returncode is not None
    return Answer(process.returncode, out.decode(), err.decode())
