"""The database's part of the proof: each statement of sql/ yields what is wrong, and no more."""

from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from kit.money import format_usd
from quotagate.statements import statement
from quotagate.verify.findings import Finding, Kind, Report

SQL = Path(__file__).with_name("sql")

_STATEMENTS = {
    name: statement(SQL, name)
    for name in ("ledger", "accounts", "entries", "team_usage", "charges", "duplicates", "spend")
}
_FIGURES = statement(SQL, "figures")
# Doctor complains of clocks that differ by more than a second; a minute is no pinned price's doing.
_CLOCK_TOLERANCE_S = 60
_PREFETCHED_ROWS = 2_000


async def check_books(snapshot: AsyncConnection, pending_limit_s: int, report: Report) -> None:
    """Look at accounts, ledger, records, charges and prices of one snapshot.

    Findings are fetched some at a time, so that also a million of them need no memory.
    """
    report.figures.update(await _figures(snapshot))
    for name, query in _STATEMENTS.items():
        parameters: dict[str, Any] = {}
        if name == "charges":
            parameters = {
                "pending_limit_s": pending_limit_s,
                "clock_tolerance_s": _CLOCK_TOLERANCE_S,
            }
        rows = await snapshot.stream(
            query, parameters, execution_options={"max_row_buffer": _PREFETCHED_ROWS}
        )
        async for kind, team_id, subject, due, found in rows:
            report.add(Finding(Kind(kind), team_id, subject, due or "none", found or "none"))


async def _figures(snapshot: AsyncConnection) -> dict[str, int | str]:
    row = (await snapshot.execute(_FIGURES)).mappings().one()
    return {
        name: format_usd(value) if name.endswith("_usd") else int(value)
        for name, value in row.items()
    }
