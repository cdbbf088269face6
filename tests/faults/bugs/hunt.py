"""Runs the suite against a bug, in a process of its own on the copy that has it."""

import asyncio
import json
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from faults.bugs import scratch
from faults.bugs.bug import Bug
from faults.report import Report
from faults.run import Scenario

SEED = 20
_TEAMS = 12
_APPLICATIONS = 3
_VERDICT = "verdict: "
_KEPT = scratch.ROOT / "build" / "faults-logs" / "bugs"
"""Where the logs of runs that caught nothing are kept."""


@dataclass(frozen=True, slots=True)
class Catch:
    """What the suite said of a bug."""

    bug: Bug
    broken: Mapping[str, int]
    """How often which rule was broken."""
    last_words: str
    """Where no rule was broken: why not."""

    @property
    def caught(self) -> bool:
        """Whether a rule was broken that this bug breaks."""
        return any(rule in self.broken for rule in self.bug.breaks)

    def __str__(self) -> str:
        rules = ", ".join(f"{rule} ({count})" for rule, count in self.broken.items())
        return (
            f"{'caught ' if self.caught else 'MISSED '} {self.bug.name}: {rules or self.last_words}"
        )


def scenario(bug: Bug) -> Scenario:
    """Return the run that brings a bug to light."""
    return Scenario(
        "bug",
        SEED,
        bug.faults,
        teams=_TEAMS,
        applications=_APPLICATIONS,
        calm_s=bug.calm_s,
    )


def verdict(report: Report) -> str:
    """Return a report's verdict as a line for :func:`hunt`."""
    broken = Counter(violation.rule.value for violation in report.violations)
    return f"{_VERDICT}{json.dumps(broken)}"


async def hunt(bug: Bug) -> Catch:
    """Run the suite against a bug."""
    folder = scratch.ROOT / "build" / "faults-bugs" / bug.name.replace(" ", "-").strip("[]")
    environment = scratch.make(bug, folder)
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "faults", "bug", "--name", bug.name),
            cwd=folder,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        catch = _read(bug, output.decode(errors="replace").strip().splitlines())
        if not catch.caught:
            kept = _KEPT / folder.name
            shutil.copytree(folder / "build" / "faults-logs", kept, dirs_exist_ok=True)
            (kept / "said.txt").write_bytes(output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return catch


def _read(bug: Bug, lines: Sequence[str]) -> Catch:
    """Return what a run said in the end; a process that failed may have said anything."""
    last = lines[-1] if lines else ""
    if not last.startswith(_VERDICT):
        return Catch(bug, {}, "\n".join(lines[-30:]) or "nothing was said")
    return Catch(bug, json.loads(last.removeprefix(_VERDICT)), "all promises were kept")
