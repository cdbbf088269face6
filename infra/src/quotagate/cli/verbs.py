"""Commands that are a group of verbs, such as `held list`."""

import argparse
from collections.abc import Callable

from quotagate.cli.answers import Command, add_options

_LISTED = 50
TIME = "%Y-%m-%d %H:%M:%S"
"""How lists show an instant, in UTC."""

AddVerb = Callable[[str, str, Command], argparse.ArgumentParser]
"""Adds a verb: its name, what it does in words, and what runs it."""


def add_group(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, words: str
) -> AddVerb:
    """Add a command that needs a verb; return what adds the verbs."""
    group = commands.add_parser(name, help=words)
    verbs = group.add_subparsers(title="verbs", required=True, metavar="VERB")

    def add(name: str, words: str, run: Command) -> argparse.ArgumentParser:
        verb = verbs.add_parser(name, help=words, allow_abbrev=False)
        add_options(verb, run)
        return verb

    return add


def add_listed(verb: argparse.ArgumentParser) -> None:
    """Add how many a list shows."""
    verb.add_argument(
        "--listed",
        type=int,
        default=_LISTED,
        metavar="N",
        help="how many to list; all are counted (%(default)s)",
    )
