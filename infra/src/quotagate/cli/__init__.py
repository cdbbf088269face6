"""The operator's command: one module per group of subcommands.

Statuses: 0 done, 1 it failed and said why, 2 wrong usage, 130 interrupted. Commands that look into
the stores: see answers.py.
"""

import argparse
import sys
from collections.abc import Sequence

from kit.errors import KitError
from quotagate.cli import (
    burying,
    catching_up,
    examining,
    holding,
    local,
    setup,
    spending,
    verifying,
)
from quotagate.demo import DemoError
from quotagate.migration_errors import MigrationError
from quotagate.stack.errors import StackError

_FAILED = 1
_INTERRUPTED = 130


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its status; what went wrong goes to standard error."""
    parser = argparse.ArgumentParser(
        prog="quotagate", description="Runs Quotagate and looks after it.", allow_abbrev=False
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    local.add_commands(commands)
    setup.add_commands(commands)
    verifying.add_commands(commands)
    examining.add_commands(commands)
    spending.add_commands(commands)
    burying.add_commands(commands)
    holding.add_commands(commands)
    catching_up.add_commands(commands)
    options = parser.parse_args(arguments)
    try:
        status: int | None = options.run(options)
    except (StackError, MigrationError, DemoError, KitError) as error:
        sys.stderr.write(f"quotagate: {error}\n")
        return _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status or 0
