"""Examines all three stores; one that doesn't answer keeps nobody from examining the others."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from kit.flaws import Flaw
from quotagate.doctor.cache import examine_cache
from quotagate.doctor.clocks import Reading, clock_flaws
from quotagate.doctor.database import examine_database
from quotagate.doctor.messaging import examine_messaging
from quotagate.stores import CannotTellError, StoreSettings


@dataclass(slots=True)
class Diagnosis:
    """What was looked at, what is wrong with it, and what could not be looked at."""

    servers: list[str] = field(default_factory=list)
    """Name and version of each."""
    clocks: list[Reading] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)


async def examine(settings: StoreSettings) -> Diagnosis:
    """Examine NATS, Redis and Postgres. Changes nothing in them."""
    diagnosis = Diagnosis()
    for part in (examine_messaging, examine_cache, examine_database):
        with _noting(diagnosis):
            found = await part(settings)
            diagnosis.servers.append(found.server)
            diagnosis.clocks.append(found.clock)
            diagnosis.flaws += found.flaws
    diagnosis.flaws += clock_flaws(diagnosis.clocks)
    return diagnosis


@contextlib.contextmanager
def _noting(diagnosis: Diagnosis) -> Iterator[None]:
    try:
        yield
    except CannotTellError as error:
        diagnosis.untold.append(str(error))
