"""`doctor`: finds configuration that would break a promise."""

import argparse
from dataclasses import asdict

from quotagate.cli.answers import Json, add_options, say, say_json, status
from quotagate.doctor import Diagnosis, examine
from quotagate.stores import StoreSettings

_US_PER_MS = 1_000


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add this module's commands."""
    command = commands.add_parser(
        "doctor", help="find configuration that would break a promise", allow_abbrev=False
    )
    add_options(command, _doctor)


async def _doctor(options: argparse.Namespace, settings: StoreSettings) -> int:
    diagnosis = await examine(settings)
    if options.json:
        say_json(_as_json(diagnosis))
    else:
        _say(diagnosis)
    return status(found=bool(diagnosis.flaws), untold=bool(diagnosis.untold))


def _as_json(diagnosis: Diagnosis) -> Json:
    return {
        "healthy": not diagnosis.flaws and not diagnosis.untold,
        "servers": diagnosis.servers,
        "clocks": [asdict(clock) for clock in diagnosis.clocks],
        "flaws": [asdict(flaw) for flaw in diagnosis.flaws],
        "untold": diagnosis.untold,
    }


def _say(diagnosis: Diagnosis) -> None:
    for server in diagnosis.servers:
        say(server)
    for clock in diagnosis.clocks:
        say(
            f"clock of {clock.store}: {clock.ahead_us / _US_PER_MS:+.1f} ms against this machine"
            f" (± {clock.error_us / _US_PER_MS:.1f} ms)"
        )
    for flaw in sorted(diagnosis.flaws, key=lambda flaw: not flaw.dangerous):
        say(f"\n{'DANGEROUS' if flaw.dangerous else 'warning'}: {flaw.what}")
        say(f"  why:  {flaw.why}")
        say(f"  mend: {flaw.mend}")
    say()
    for reason in diagnosis.untold:
        say(f"Can't tell: {reason}.")
    if diagnosis.flaws:
        dangerous = sum(flaw.dangerous for flaw in diagnosis.flaws)
        say(f"Flaws: {len(diagnosis.flaws)}, of them dangerous: {dangerous}.")
    elif not diagnosis.untold:
        say("Healthy: nothing that was looked at would break a promise.")
