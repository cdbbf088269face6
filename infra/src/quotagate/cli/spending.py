"""`unknown-spend` and `reconcile`: what was spent, as far as we know, and as the provider says."""

import argparse
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path

from kit.money import format_usd
from quotagate.cli.answers import Json, add_options, say, say_json, status, table
from quotagate.days import Days
from quotagate.reconcile import (
    Comparison,
    Difference,
    Ours,
    Tolerance,
    UsageFile,
    UsageFileError,
    compare,
    our_totals,
    read_usage_file,
)
from quotagate.stores import StoreSettings
from quotagate.unknown_spend import Spend, unknown_spend

_DEFAULT_DAYS = 30
_YEARS = range(2000, 2200)


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this module's commands."""
    unknown = commands.add_parser(
        "unknown-spend",
        help="show attempts without usage and failed ones, by day and model",
        allow_abbrev=False,
    )
    _add_days(unknown, f"the last {_DEFAULT_DAYS} days")
    add_options(unknown, _unknown_spend)

    reconcile = commands.add_parser(
        "reconcile",
        help="compare our totals with a provider's usage export",
        allow_abbrev=False,
    )
    reconcile.add_argument("file", type=Path, metavar="FILE.csv", help="the provider's export")
    reconcile.add_argument("--provider", required=True, help="the provider, as the routes call it")
    reconcile.add_argument(
        "--column",
        type=_pair,
        action="append",
        default=[],
        metavar="OURS=THEIRS",
        help="the file's column for one of ours; an empty one leaves it out",
    )
    reconcile.add_argument(
        "--alias",
        type=_pair,
        action="append",
        default=[],
        metavar="THEIRS=OURS",
        help="our name for a model of theirs",
    )
    reconcile.add_argument(
        "--models",
        choices=("served", "sent"),
        default="served",
        help="call our models as the provider's answers do, or as our routes do (%(default)s)",
    )
    _add_tolerances(reconcile)
    _add_days(reconcile, "the file's days")
    add_options(reconcile, _reconcile)


def _add_tolerances(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--tolerance",
        type=_amount,
        default=Decimal(0),
        metavar="PERCENT",
        help="how much a value may differ (%(default)s)",
    )
    command.add_argument(
        "--tolerance-usd",
        type=_amount,
        default=Decimal(0),
        metavar="USD",
        help="how much a day's cost of a model may differ (%(default)s)",
    )


def _add_days(command: argparse.ArgumentParser, default: str) -> None:
    for name, which in (("--since", "first"), ("--until", "last")):
        command.add_argument(
            name,
            type=_day,
            metavar="YYYY-MM-DD",
            help=f"the {which} day, UTC ({default})",
        )


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a day: {text!r}") from None
    if day.year not in _YEARS:
        raise argparse.ArgumentTypeError(f"not a day of these centuries: {text!r}")
    return day


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise argparse.ArgumentTypeError(f"not NAME=VALUE: {text!r}")
    return name, value


def _amount(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not (amount.is_finite() and amount >= 0):
        raise argparse.ArgumentTypeError(f"not a number from 0: {text!r}")
    return amount


async def _unknown_spend(options: argparse.Namespace, settings: StoreSettings) -> int:
    last = options.until or datetime.now(UTC).date()
    days = Days(options.since or last - timedelta(days=_DEFAULT_DAYS - 1), last)
    spends = await unknown_spend(settings, days)
    if options.json:
        say_json(
            {
                "since": days.first.isoformat(),
                "until": days.last.isoformat(),
                "unknown_spend": [_spend_as_json(spend) for spend in spends],
            }
        )
    else:
        _say_spends(spends, days)
    return status(found=bool(spends), untold=False)


def _spend_as_json(spend: Spend) -> Json:
    return {
        "day": spend.day.isoformat(),
        "provider": spend.provider,
        "model": spend.model,
        "attempts": sum(spend.attempts.values()),
        "without_usage": sum(spend.without_usage.values()),
        "outcomes": dict(spend.attempts),
        "statuses": {_status(code): count for code, count in spend.statuses.items()},
    }


def _status(code: int | None) -> str:
    return "none" if code is None else str(code)


def _say_spends(spends: list[Spend], days: Days) -> None:
    say(f"Attempts that failed or told no usage, {days.first} to {days.last} (UTC):\n")
    if not spends:
        say("None.")
        return
    rows = [["DAY", "PROVIDER", "MODEL", "ATTEMPTS", "WITHOUT USAGE", "OUTCOMES", "HTTP STATUSES"]]
    for spend in spends:
        statuses = {_status(code): count for code, count in spend.statuses.items()}
        rows.append(
            [
                spend.day.isoformat(),
                spend.provider,
                spend.model,
                f"{sum(spend.attempts.values()):,}",
                f"{sum(spend.without_usage.values()):,}",
                ", ".join(f"{name} {n:,}" for name, n in sorted(spend.attempts.items())),
                ", ".join(f"{code} × {n:,}" for code, n in sorted(statuses.items())),
            ]
        )
    for line in table(rows, right=frozenset({3, 4})):
        say(line)


async def _reconcile(options: argparse.Namespace, settings: StoreSettings) -> int:
    wanted = Days(options.since or date.min, options.until or date.max)
    usage = read_usage_file(options.file, dict(options.column), dict(options.alias), wanted)
    dates = [day for day, _ in usage.totals]
    first, last = options.since, options.until
    if not dates and not (first and last):
        raise UsageFileError(f"{options.file}: no rows of these days; name --since and --until")
    days = Days(first or min(dates), last or max(dates))
    ours = await our_totals(settings, options.provider, days, by_served=options.models == "served")
    tolerance = Tolerance(options.tolerance, options.tolerance_usd)
    comparison = compare(ours.totals, usage.totals, usage.measures, tolerance)
    if options.json:
        say_json(_as_json(comparison, ours, days))
    else:
        _say(comparison, ours, usage, days)
    return status(found=bool(comparison.differences), untold=False)


def _as_json(comparison: Comparison, ours: Ours, days: Days) -> Json:
    return {
        "since": days.first.isoformat(),
        "until": days.last.isoformat(),
        "sums": {
            measure.value: {"ours": format_usd(mine), "theirs": format_usd(theirs)}
            for measure, (mine, theirs) in comparison.sums.items()
        },
        "differences": [
            {
                "day": each.day.isoformat(),
                "model": each.model,
                "measure": each.measure.value,
                "ours": format_usd(each.ours),
                "theirs": format_usd(each.theirs),
                "apart": format_usd(each.apart),
                "only": each.only,
                "without_usage": ours.without_usage.get((each.day, each.model), 0),
                "uncharged": ours.uncharged.get((each.day, each.model), 0),
            }
            for each in comparison.differences
        ],
    }


def _say(comparison: Comparison, ours: Ours, usage: UsageFile, days: Days) -> None:
    say(f"{days.first} to {days.last} (UTC), {usage.rows:,} rows of the export:\n")
    rows = [["SUM", "OURS", "THEIRS"]]
    rows += [
        [measure.value, format_usd(mine), format_usd(theirs)]
        for measure, (mine, theirs) in comparison.sums.items()
    ]
    for line in table(rows, right=frozenset({1, 2})):
        say(line)
    say()
    if not comparison.differences:
        say(f"Equal: each of {comparison.compared:,} days and models.")
        return
    rows = [["DAY", "MODEL", "WHAT", "OURS", "THEIRS", "APART", "NOTE"]]
    rows += [_row(each, ours) for each in comparison.differences]
    for line in table(rows, right=frozenset({3, 4, 5})):
        say(line)
    say(f"\n{len(comparison.differences):,} values differ.")


def _row(difference: Difference, ours: Ours) -> list[str]:
    key = (difference.day, difference.model)
    notes = [f"only {difference.only}"] if difference.only else []
    if key in ours.without_usage:
        notes.append(f"{ours.without_usage[key]:,} of ours without usage")
    if key in ours.uncharged:
        notes.append(f"{ours.uncharged[key]:,} of ours without a charge yet")
    apart = format_usd(difference.apart)
    return [
        difference.day.isoformat(),
        difference.model,
        difference.measure.value,
        format_usd(difference.ours),
        format_usd(difference.theirs),
        apart if apart.startswith("-") else f"+{apart}",
        ", ".join(notes),
    ]
