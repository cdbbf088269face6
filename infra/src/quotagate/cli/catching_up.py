"""`catch-up`: after the database was restored to an earlier moment."""

import argparse
import sys
from dataclasses import asdict

from quotagate.catch_up import Outcome, Patience, catch_up
from quotagate.cli.answers import add_options, say, say_json, status
from quotagate.stores import StoreSettings

_LISTED = 20


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this module's commands."""
    command = commands.add_parser(
        "catch-up",
        help="after a restore of the database: replay the stream, have the caches forget",
        allow_abbrev=False,
    )
    command.add_argument(
        "--standstill-s",
        type=float,
        default=Patience().standstill_s,
        metavar="S",
        help="seconds settlement may make no progress (%(default)s)",
    )
    add_options(command, _catch_up)


async def _catch_up(options: argparse.Namespace, settings: StoreSettings) -> int:
    outcome = await catch_up(settings, Patience(options.standstill_s, _hear))
    if options.json:
        say_json(asdict(outcome))
    else:
        _say(outcome)
    return status(found=outcome.replay.gap is not None, untold=False)


def _hear(reached: int, last: int) -> None:
    sys.stderr.write(f"settled through sequence {reached:,} of {last:,}\n")


def _say(outcome: Outcome) -> None:
    replay, forgotten = outcome.replay, outcome.forgotten
    say(
        f"Replayed the stream through sequence {replay.last:,}: {replay.new_records:,} new records."
    )
    if forgotten:
        names = ", ".join(forgotten[:_LISTED])
        more = f" and {len(forgotten) - _LISTED:,} more" if len(forgotten) > _LISTED else ""
        say(f"The caches forgot what was newer than the database of {len(forgotten):,} teams:")
        say(f"  {names}{more}")
    else:
        say("The caches knew nothing that is newer than the database.")
    if replay.gap is not None:
        say(
            f"LOST, as it seems: the sequences {replay.gap.first:,} to {replay.gap.last:,} were"
            " trimmed from the stream, and the database has no record of them."
        )
    say("What was changed in the control plane since is not in the stream: see what is missing.")
