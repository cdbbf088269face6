"""Measure what the gateway costs: `python -m bench short|long`, with `tests` on the path.

Prints a table and writes build/bench.json. No figure passes or fails: they depend on the machine
and on who else uses it. See docs/performance.md.
"""

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from bench.figures import Figures
from bench.parts import (
    decisions,
    latency,
    limits,
    overload,
    scaling,
    settling,
    soak,
    streams,
    teams,
    throughput,
    unsynced,
)
from bench.plan import LONG, SHORT, Plan
from bench.stage import stage

_OUT = Path(__file__).parents[2] / "build" / "bench.json"
_started_s = time.monotonic()


def _tell(text: str) -> None:
    sys.stderr.write(f"{time.monotonic() - _started_s:6.1f}  {text}\n")
    sys.stderr.flush()


def measure(plan: Plan, figures: Figures) -> None:
    """Measure one part after the other on one stack, and what needs another on one of its own."""
    with stage(_tell) as standing:
        parts = [throughput, latency, streams, decisions, settling]
        if plan.whole:
            parts += [limits, scaling, teams, overload]
        if plan.soak_s:
            parts.append(soak)
        for part in parts:
            _tell(part.__name__.rpartition(".")[2])
            part.measure(standing, figures, plan)
    _tell("without the disk's sync")
    unsynced.measure(figures, plan, _tell)


def main() -> int:
    """Return 0: it was measured."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    parser.add_argument("form", choices=("short", "long"))
    parser.add_argument("--soak", type=float, help="seconds of steady load to watch memory")
    parser.add_argument("--out", type=Path, default=_OUT)
    options = parser.parse_args()
    plan = SHORT if options.form == "short" else LONG
    if options.soak is not None:
        plan = replace(plan, soak_s=options.soak)
    figures = Figures()
    load_before = os.getloadavg()[0]
    measure(plan, figures)
    figures.write(options.out, {"form": options.form, "load_average_before": load_before})
    sys.stdout.write(f"{figures.table()}\n")
    if load_before > 1:
        sys.stdout.write(f"\nSomebody else was at work: the load was {load_before:.1f} before.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
