"""How the commands that look into the stores are asked and answer.

Statuses: 0 nothing to complain of, 1 something was found, 2 wrong usage or it can't be told. That a
store doesn't answer is never 0.
"""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kit.errors import KitError
from quotagate.stack.errors import StackError
from quotagate.stores import CannotTellError, StoreSettings, store_settings

FINE, FOUND, CANNOT_TELL = 0, 1, 2

Json = dict[str, Any]
Command = Callable[[argparse.Namespace, StoreSettings], Awaitable[int]]


def add_options(command: argparse.ArgumentParser, run: Command) -> None:
    """Add what all of these commands have, and what runs them."""
    command.add_argument("--json", action="store_true", help="answer in JSON, for programs")
    command.add_argument(
        "--stack",
        type=Path,
        metavar="DIR",
        help="look into the local stack in this folder (else the environment's stores,"
        " else the stack here)",
    )

    def answer(options: argparse.Namespace) -> int:
        try:
            return asyncio.run(_run(run, options))
        except (CannotTellError, KitError, StackError) as error:
            sys.stderr.write(f"quotagate: {error}\n")
            return CANNOT_TELL

    command.set_defaults(run=answer)


async def _run(run: Command, options: argparse.Namespace) -> int:
    return await run(options, store_settings(options.stack, os.environ))


def status(*, found: bool, untold: bool) -> int:
    """Return the status: what was found is certain, whatever else can't be told."""
    return FOUND if found else CANNOT_TELL if untold else FINE


def say(text: str = "") -> None:
    """Write lines of the answer."""
    sys.stdout.write(text + "\n")


def say_json(answer: Json) -> None:
    """Write the answer as JSON; amounts are strings, so that no reader makes floats of them."""
    sys.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")


def table(rows: list[list[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Return rows as aligned lines; the columns in `right` are aligned to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return [
        "  ".join(
            cell.rjust(widths[i]) if i in right else cell.ljust(widths[i])
            for i, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]
