"""The figures of a run: a table for people, build/bench.json for programs."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure."""

    value: float
    unit: str
    meaning: str


class Figures:
    """All figures of a run, in the order in which they were measured."""

    def __init__(self) -> None:
        self._figures: dict[str, Figure] = {}

    def __getitem__(self, name: str) -> float:
        """Return a figure's value.

        Raises:
            KeyError: it wasn't measured.

        """
        return self._figures[name].value

    def __contains__(self, name: str) -> bool:
        return name in self._figures

    def add(self, name: str, value: float, unit: str, meaning: str) -> None:
        """Keep a figure. Names say the unit, as everywhere."""
        self._figures[name] = Figure(value, unit, meaning)

    def add_ratio(self, name: str, above: str, below: str, meaning: str) -> None:
        """Keep the quotient of two figures, if both were measured and the second isn't zero."""
        if above in self and below in self and self[below]:
            self.add(name, self[above] / self[below], "×", meaning)

    def table(self) -> str:
        """Return the figures as a table."""
        width = max((len(name) for name in self._figures), default=0)
        return "\n".join(
            f"{name:{width}}  {_short(figure.value):>10} {figure.unit:<6} {figure.meaning}"
            for name, figure in self._figures.items()
        )

    def write(self, path: Path, about: Mapping[str, object]) -> None:
        """Write each figure under its name, what it means under `figures`, the machine beside."""
        path.parent.mkdir(parents=True, exist_ok=True)
        page: dict[str, object] = {name: each.value for name, each in self._figures.items()}
        page["figures"] = {name: asdict(each) for name, each in self._figures.items()}
        page["about"] = {**machine(), **about}
        path.write_text(json.dumps(page, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def machine() -> dict[str, object]:
    """Return what the figures depend on; the load says whether somebody else was at work."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load_average": os.getloadavg(),
    }


def _short(value: float) -> str:
    if value == int(value) or abs(value) >= 10 ** (_DIGITS - 1):
        return f"{value:,.0f}"
    return f"{value:.{_DIGITS}g}"
