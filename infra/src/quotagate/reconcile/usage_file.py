"""Reads a provider's usage export: a CSV file with a header, columns in any order."""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import MappingProxyType

from kit.money import exact_sum
from quotagate.days import Days
from quotagate.reconcile.measures import Key, Measure, Totals
from quotagate.stores import CannotTellError

DATE, MODEL = "date", "model"

# By what names providers' exports and usage APIs call the columns; ours is always understood.
KNOWN_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        DATE: ("day", "start_time", "starting_at"),
        MODEL: (),
        Measure.REQUESTS: ("request_count", "num_model_requests"),
        Measure.INPUT_TOKENS: ("prompt_tokens",),
        Measure.UNCACHED_INPUT_TOKENS: (),
        Measure.CACHED_TOKENS: (
            "input_cached_tokens",
            "cached_input_tokens",
            "cache_read_input_tokens",
        ),
        Measure.CACHE_WRITE_TOKENS: ("cache_creation_input_tokens",),
        Measure.OUTPUT_TOKENS: ("completion_tokens",),
        Measure.COST_USD: ("cost",),
    }
)

_UNIX_SECONDS = re.compile(r"\d{9,10}")
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")


class UsageFileError(CannotTellError):
    """The file can't be read as a usage export."""


@dataclass(frozen=True, slots=True)
class UsageFile:
    """An export: its totals by day and model, and what it tells of each."""

    totals: Mapping[Key, Totals]
    measures: tuple[Measure, ...]
    rows: int


def read_usage_file(
    path: Path, columns: Mapping[str, str], aliases: Mapping[str, str], days: Days | None = None
) -> UsageFile:
    """Read an export. Rows of one day and model are added up; rows of nothing but zeros are none.

    `columns` names the file's column for a name of ours, where it isn't one of the known names; an
    empty one leaves a column out. `aliases` gives our name for a model of theirs. Rows outside
    `days` are left out.

    Raises:
        UsageFileError: no such file, a missing or ambiguous column, a cell that can't be read.

    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            places = _places(reader.fieldnames or (), columns)
            measures = tuple(measure for measure in Measure if measure in places)
            if not measures:
                raise UsageFileError(f"{path}: no column tells requests, tokens or costs")
            return _read(reader, places, measures, aliases, days)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageFileError(f"{path}: {error}") from error


def _read(
    reader: "csv.DictReader[str]",
    places: Mapping[str, str],
    measures: tuple[Measure, ...],
    aliases: Mapping[str, str],
    days: Days | None,
) -> UsageFile:
    totals: dict[Key, dict[Measure, Decimal]] = {}
    rows = 0
    for row in reader:
        line = reader.line_num
        values = {m: _number(row[places[m]], line, places[m]) for m in measures}
        if not any(values.values()):
            continue
        day = _day(row[places[DATE]], line)
        if days is not None and not days.first <= day <= days.last:
            continue
        rows += 1
        model = (row[places[MODEL]] or "").strip()
        total = totals.setdefault((day, aliases.get(model, model)), {})
        for measure, value in values.items():
            total[measure] = exact_sum(total.get(measure, Decimal(0)), value)
    return UsageFile(totals, measures, rows)


def _places(header: Iterable[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the file's column for each of our names that it has."""
    by_lower = {name.strip().lower(): name for name in header}
    places = {}
    for ours, known in KNOWN_NAMES.items():
        if ours in columns:
            found = [columns[ours]] if columns[ours] else []
            if found and found[0] not in by_lower.values():
                raise UsageFileError(f"there is no column {found[0]!r}")
        else:
            found = [by_lower[name] for name in (ours, *known) if name in by_lower]
        if len(found) > 1:
            raise UsageFileError(
                f"{' and '.join(found)} may both be {ours}: say which with --column {ours}=NAME"
            )
        if found:
            places[ours] = found[0]
        elif ours in {DATE, MODEL}:
            raise UsageFileError(f"no column is known as {ours}: name it with --column {ours}=NAME")
    return places


def _day(cell: str | None, line: int) -> date:
    """Return the UTC day of a date, an ISO 8601 instant (UTC where it names no zone) or unix s."""
    words = (cell or "").strip()
    try:
        if _UNIX_SECONDS.fullmatch(words):
            return datetime.fromtimestamp(int(words), UTC).date()
        instant = datetime.fromisoformat(words)
    except ValueError:
        raise UsageFileError(f"line {line}: not a date: {words!r}") from None
    return (instant if instant.tzinfo is None else instant.astimezone(UTC)).date()


def _number(cell: str | None, line: int, column: str) -> Decimal:
    """Return a number exactly; an empty cell is 0."""
    words = (cell or "").strip().removeprefix("$").strip()
    if _THOUSANDS.fullmatch(words):
        words = words.replace(",", "")
    try:
        number = Decimal(words or "0")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise UsageFileError(f"line {line}: {column} is not a number: {words!r}")
    return number
