"""Run the fault suite: `python -m faults storm`, with `tests` on the path. See docs/faults.md.

storm   faults drawn from a seed, many of them
tour    each kind of fault and each crash point once
bugs    bugs sown on purpose, of which the suite must catch each
bug     the run that brings a bug to light, on whatever code is imported
"""

import argparse
import asyncio
import secrets
import signal
import sys
import time

from faults.bugs import BUGS
from faults.bugs.hunt import hunt, scenario, verdict
from faults.run import Scenario, run
from faults.strikes.plan import drawn, tour
from faults.strikes.striker import Density

_MANY = 220
# The tour is to be short; what it proves isn't how faults meet, which is the storm's matter.
_CLOSE = Density(at_once=4, gap_s=(0.05, 0.3))
_started_s = time.monotonic()


def _tell(text: str) -> None:
    sys.stdout.write(f"{time.monotonic() - _started_s:6.1f}  {text}\n")
    sys.stdout.flush()


def _run(chosen: Scenario) -> int:
    _tell(f"seed {chosen.seed}: SEED={chosen.seed} repeats the faults")
    report = asyncio.run(run(chosen, _tell))
    sys.stdout.write(f"{report}\n")
    if report.unreached:
        _tell(f"nobody passed {', '.join(report.unreached)}: that proves nothing")
    return 1 if report.violations or report.unreached else 0


def _show_bug(name: str) -> int:
    bug = next(bug for bug in BUGS if bug.name == name)
    report = asyncio.run(run(scenario(bug), _tell))
    sys.stdout.write(f"{report}\n{verdict(report)}\n")
    return 0


def _hunt_bugs(name: str | None) -> int:
    wanted = [bug for bug in BUGS if name is None or name in bug.name]
    missed = 0
    for bug in wanted:
        catch = asyncio.run(hunt(bug))
        missed += not catch.caught
        _tell(str(catch))
    sys.stdout.write(f"bugs={len(wanted)} caught={len(wanted) - missed} missed={missed}\n")
    return 1 if missed else 0


def main() -> int:
    """Return 0 if every promise held, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="faults", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("storm", "tour", "bugs", "bug"))
    parser.add_argument("--seed", type=int, help="the same seed, the same faults; default: any")
    parser.add_argument("--faults", type=int, help="how many")
    parser.add_argument("--name", help="of the bug")
    options = parser.parse_args()
    # Told to stop, take the world down as if interrupted.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    if options.what == "bugs":
        return _hunt_bugs(options.name)
    if options.what == "bug":
        return _show_bug(options.name or "")
    if options.what == "tour":
        return _run(Scenario("tour", seed, tour(seed)[: options.faults], density=_CLOSE))
    return _run(Scenario("storm", seed, drawn(seed, options.faults or _MANY)))


if __name__ == "__main__":
    sys.exit(main())
