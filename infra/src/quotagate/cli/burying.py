"""`dead-letters list | show | replay | drop`: messages that could not be handled."""

import argparse
import json
from collections.abc import AsyncIterator
from dataclasses import asdict

from nats.aio.client import Client

from quotagate import stores
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
from quotagate.dead_letters import (
    Fate,
    GivenUp,
    Letter,
    Replay,
    drop,
    given_up,
    letter,
    letters,
    replay,
)
from quotagate.stores import CannotTellError, StoreSettings


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this module's commands."""
    add = add_group(
        commands, "dead-letters", "list, show, replay or drop what could not be handled"
    )
    listing = add("list", "list them with their reasons", _list)
    _add_filters(listing)
    add_listed(listing)
    showing = add("show", "show one, with its message", _show)
    showing.add_argument("number", type=int, metavar="NUMBER")
    replaying = add("replay", "send messages again, once the reason is mended", _replay)
    replaying.add_argument("numbers", type=int, nargs="*", metavar="NUMBER")
    replaying.add_argument("--all", action="store_true", help="all of them, or of the filters'")
    _add_filters(replaying)
    dropping = add("drop", "remove them for good", _drop)
    dropping.add_argument("numbers", type=int, nargs="+", metavar="NUMBER")


def _add_filters(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--consumer", help="only those of this consumer, such as settlement")
    verb.add_argument("--reason", metavar="PREFIX", help="only those whose reason begins so")


def _fits(found: Letter, options: argparse.Namespace) -> bool:
    content = found.content
    if content is None:
        return options.consumer is None and options.reason is None
    return (options.consumer in {None, content.consumer}) and content.reason.startswith(
        options.reason or ""
    )


async def _list(options: argparse.Namespace, settings: StoreSettings) -> int:
    listed: list[Letter] = []
    count = 0
    lettered = set()
    async with stores.bus(settings) as client:
        async for found in letters(client):
            if found.content is not None:
                lettered.add((found.content.stream, found.content.stream_sequence))
            if _fits(found, options):
                count += 1
                if len(listed) < options.listed:
                    listed.append(found)
        unhandled = await given_up(client, lettered)
    if options.json:
        say_json(
            {
                "count": count,
                "dead_letters": [_as_json(found) for found in listed],
                "given_up": [
                    asdict(each) | {"kept_at": each.kept_at.isoformat()} for each in unhandled
                ],
            }
        )
    else:
        _say_list(listed, count, unhandled)
    return status(found=bool(count or unhandled), untold=False)


def _as_json(found: Letter) -> Json:
    content = found.content
    about: Json = {"number": found.number, "kept_at": found.kept_at.isoformat()}
    if content is None:
        return about | {"reason": "not a dead letter as we write them"}
    return about | {
        "consumer": content.consumer,
        "stream": content.stream,
        "stream_sequence": content.stream_sequence,
        "subject": content.subject,
        "reason": content.reason,
        "payload_cut": content.payload_cut,
    }


def _say_list(listed: list[Letter], count: int, unhandled: list[GivenUp]) -> None:
    if listed:
        rows = [["NUMBER", "KEPT AT (UTC)", "CONSUMER", "SUBJECT", "REASON"]]
        rows += [_row(found) for found in listed]
        for line in table(rows, right=frozenset({0})):
            say(line)
    if count > len(listed):
        say(f"… and {count - len(listed):,} more")
    for each in unhandled:
        say(
            f"{each.kept_at:{TIME}}: the server gave up {each.stream} {each.stream_sequence} for"
            f" {each.consumer} after {each.deliveries} deliveries; no dead letter yet"
        )
    if not (count or unhandled):
        say("None.")


def _row(found: Letter) -> list[str]:
    at = format(found.kept_at, TIME)
    content = found.content
    if content is None:
        return [str(found.number), at, "?", "?", "not a dead letter as we write them"]
    return [str(found.number), at, content.consumer, content.subject, content.reason]


async def _show(options: argparse.Namespace, settings: StoreSettings) -> int:
    async with stores.bus(settings) as client:
        found = await letter(client, options.number)
    about = _as_json(found)
    payload = found.raw if found.payload is None else found.payload
    message = _readable(payload)
    if options.json:
        say_json(about | {"payload": message})
        return FINE
    for name, value in about.items():
        say(f"{name}: {value}")
    say(f"\n{message if isinstance(message, str) else json.dumps(message, indent=2)}")
    return FINE


def _readable(payload: bytes) -> object:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        return payload.decode(errors="backslashreplace")


async def _replay(options: argparse.Namespace, settings: StoreSettings) -> int:
    if bool(options.numbers) == options.all:
        raise CannotTellError("name dead letters by their numbers, or --all")
    replays = []
    async with stores.bus(settings) as client:
        async for found in _chosen(client, options):
            replays.append(await replay(client, found))
            if not options.json:
                _say_replay(replays[-1])
    if options.json:
        say_json({"replays": [asdict(each) for each in replays]})
    done = sum(each.fate is Fate.REPLAYED for each in replays)
    if not options.json:
        say(f"{done:,} of {len(replays):,} replayed.")
    return FINE if done == len(replays) else FOUND


async def _chosen(client: Client, options: argparse.Namespace) -> AsyncIterator[Letter]:
    if options.all:
        async for found in letters(client):
            if _fits(found, options):
                yield found
    else:
        for number in options.numbers:
            yield await letter(client, number)


def _say_replay(each: Replay) -> None:
    say(f"{each.number}: {each.fate.value} ({each.detail})")


async def _drop(options: argparse.Namespace, settings: StoreSettings) -> int:
    async with stores.bus(settings) as client:
        # All of them are looked for first: a wrong number drops nothing.
        for found in [await letter(client, number) for number in options.numbers]:
            await drop(client, found)
    if options.json:
        say_json({"dropped": options.numbers})
    else:
        say(f"{len(options.numbers):,} dropped.")
    return FINE
