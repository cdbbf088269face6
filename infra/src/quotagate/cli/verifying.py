"""`verify`: proves balances, charges and caches."""

import argparse
from dataclasses import asdict

from quotagate.cli.answers import Json, add_options, say, say_json, status
from quotagate.stores import StoreSettings
from quotagate.verify import SENTENCES, Options, Report, verify

_FIGURES = (
    ("accounts", "accounts"),
    ("balance_usd", "their balance in USD"),
    ("ledger_entries", "ledger entries"),
    ("records", "inference records"),
    ("settled", "… settled"),
    ("pending", "… pending"),
    ("unbillable", "… without usage"),
    ("held", "… held for a person"),
    ("written_off", "… written off by a person"),
    ("usage_charges", "usage charges"),
    ("charged_usd", "their amount in USD"),
    ("stream_records", "records of the stream"),
    ("dead_letters", "dead letters among them"),
    ("cached_balances", "cached balances"),
    ("seconds", "seconds it took"),
)


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this module's commands."""
    defaults = Options()
    command = commands.add_parser(
        "verify", help="prove that no charge is lost, doubled or wrong", allow_abbrev=False
    )
    command.add_argument(
        "--no-cache", action="store_true", help="leave out the cached balances in Redis"
    )
    command.add_argument(
        "--no-stream", action="store_true", help="leave out the stream of inference records"
    )
    command.add_argument(
        "--pending-limit-s",
        type=int,
        default=defaults.pending_limit_s,
        metavar="S",
        help="seconds a record may wait for its charge (%(default)s)",
    )
    command.add_argument(
        "--cache-wait-s",
        type=float,
        default=defaults.cache_wait_s,
        metavar="S",
        help="seconds a cached balance may differ (%(default)s)",
    )
    command.add_argument(
        "--listed",
        type=int,
        default=defaults.listed,
        metavar="N",
        help="findings of each kind to list; all are counted (%(default)s)",
    )
    add_options(command, _verify)


async def _verify(options: argparse.Namespace, settings: StoreSettings) -> int:
    report = await verify(
        settings,
        Options(
            with_cache=not options.no_cache,
            with_stream=not options.no_stream,
            pending_limit_s=options.pending_limit_s,
            cache_wait_s=options.cache_wait_s,
            listed=options.listed,
        ),
    )
    if options.json:
        say_json(_as_json(report))
    else:
        _say(report)
    return status(found=bool(report.counts), untold=bool(report.untold))


def _as_json(report: Report) -> Json:
    return {
        "proved": not report.counts and not report.untold,
        "figures": report.figures,
        "counts": {kind.value: count for kind, count in sorted(report.counts.items())},
        "findings": [asdict(finding) for finding in report.findings],
        "untold": report.untold,
        "notes": report.notes,
    }


def _say(report: Report) -> None:
    width = max(len(name) for _, name in _FIGURES)
    for key, name in _FIGURES:
        if key in report.figures:
            value = report.figures[key]
            say(
                f"{name:<{width}}  {value:,}"
                if isinstance(value, int)
                else f"{name:<{width}}  {value}"
            )
    for kind, count in sorted(report.counts.items()):
        say(f"\n{kind.value}: {count:,}. {SENTENCES[kind]}")
        listed = [finding for finding in report.findings if finding.kind == kind]
        for finding in listed:
            team = f"team {finding.team_id}, " if finding.team_id else ""
            say(f"  {team}{finding.subject}: should be {finding.due}, is {finding.found}")
        if count > len(listed):
            say(f"  … and {count - len(listed):,} more")
    say()
    for note in report.notes:
        say(f"Note: {note}.")
    for reason in report.untold:
        say(f"Can't tell: {reason}.")
    total = sum(report.counts.values())
    if total:
        say(f"NOT IN ORDER. Findings: {total:,}, kinds: {len(report.counts)}.")
    elif report.untold:
        say("NOT PROVED: a store didn't answer.")
    else:
        say("In order: every balance, charge and cached balance that was looked at is proved.")
