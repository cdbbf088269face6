"""Run the fault suite: `python -m faults storm`, with `tests` on the path. See docs/faults.md."""

import argparse
import asyncio
import secrets
import sys
import time

from faults.run import Scenario, run
from faults.strikes.plan import drawn, tour


def _scenario(options: argparse.Namespace) -> Scenario:
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    if options.what == "tour":
        return Scenario("tour", seed, tour(seed)[: options.faults])
    return Scenario("storm", seed, drawn(seed, options.faults or 220), teams=options.teams)


def main() -> int:
    """Return 0 if every promise held, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("what", choices=("storm", "tour"))
    parser.add_argument("--seed", type=int, help="the same seed, the same faults; default: any")
    parser.add_argument("--faults", type=int, help="how many")
    parser.add_argument("--teams", type=int, default=24)
    scenario = _scenario(parser.parse_args())
    started_s = time.monotonic()

    def tell(text: str) -> None:
        sys.stdout.write(f"{time.monotonic() - started_s:6.1f}  {text}\n")
        sys.stdout.flush()

    tell(f"seed {scenario.seed}: SEED={scenario.seed} repeats the faults")
    report = asyncio.run(run(scenario, tell))
    sys.stdout.write(f"{report}\n")
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
