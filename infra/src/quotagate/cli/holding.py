"""`held list | release | write-off`: records that settlement won't charge by itself."""

import argparse
import uuid
from dataclasses import asdict

from quotagate.cli.answers import (
    FINE,
    FOUND,
    Json,
    say,
    say_json,
    status,
    table,
)
from quotagate.cli.verbs import TIME, add_group, add_listed
from quotagate.held import Decided, Held, Holding, holding, release, write_off
from quotagate.stores import StoreSettings


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this module's commands."""
    add = add_group(
        commands,
        "held",
        "list, release or write off records that settlement holds for a person",
    )
    listing = add("list", "list them with their reasons", _list)
    listing.add_argument("--team", help="only this team's")
    listing.add_argument("--reason", help="only those held for this reason")
    add_listed(listing)
    releasing = add("release", "have records charged as they are", _release)
    _add_choice(releasing)
    releasing.add_argument(
        "--price",
        type=uuid.UUID,
        metavar="PRICE_ID",
        help="charge them by this price, which was in effect when they started",
    )
    _add_choice(add("write-off", "have nobody pay for records", _write_off))


def _add_choice(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("records", type=int, nargs="+", metavar="RECORD")
    verb.add_argument("--note", required=True, type=_note, help="why; it is kept with the decision")


def _note(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("say why")
    return text.strip()


async def _list(options: argparse.Namespace, settings: StoreSettings) -> int:
    found = await holding(
        settings, team_id=options.team, reason=options.reason, listed=options.listed
    )
    if options.json:
        say_json({"counts": found.counts, "held": [_as_json(each) for each in found.records]})
    else:
        _say(found)
    return status(found=bool(found.counts), untold=False)


def _as_json(held: Held) -> Json:
    return asdict(held) | {"started_at": held.started_at.isoformat()}


def _say(found: Holding) -> None:
    if not found.counts:
        say("None.")
        return
    rows = [["RECORD", "STARTED (UTC)", "TEAM", "REASON", "PROVIDER", "MODEL", "TOKENS", "PRICE"]]
    rows += [_row(held) for held in found.records]
    for line in table(rows, right=frozenset({0, 6})):
        say(line)
    if (more := sum(found.counts.values()) - len(found.records)) > 0:
        say(f"… and {more:,} more")
    say()
    for reason, count in found.counts.items():
        say(f"{reason}: {count:,}")


def _row(held: Held) -> list[str]:
    price = held.price_id or "none"
    if held.price_then not in {None, held.price_id}:
        price += f" (then in effect: {held.price_then})"
    return [
        str(held.record_id),
        format(held.started_at, TIME),
        held.team_id,
        held.reason,
        held.provider,
        held.model or "?",
        f"{held.tokens:,}",
        price,
    ]


async def _release(options: argparse.Namespace, settings: StoreSettings) -> int:
    decided = await release(settings, options.records, options.note, options.price)
    return _tell(decided, "released", options)


async def _write_off(options: argparse.Namespace, settings: StoreSettings) -> int:
    decided = await write_off(settings, options.records, options.note)
    return _tell(decided, "written off", options)


def _tell(decided: Decided, done: str, options: argparse.Namespace) -> int:
    if options.json:
        say_json(asdict(decided))
    else:
        say(f"{len(decided.done):,} {done}.")
        for record_id in decided.not_held:
            say(f"Record {record_id} is not held; nothing was done about it.")
    return FOUND if decided.not_held else FINE
