"""What the handlers work with; made once, by app.py."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from control_plane.clients.admission import Admission
from control_plane.clients.edge import Edge
from control_plane.store.database import Database


@dataclass(frozen=True, slots=True)
class Services:
    """The database, admission, the pepper of new keys, and how to wake the relay."""

    database: Database
    admission: Admission
    edge: Edge
    key_pepper: str
    wake_relay: Callable[[], None]


def services(request: Request) -> Services:
    """Return what the application was built with."""
    known: Services = request.app.state.services
    return known


Known = Annotated[Services, Depends(services)]
