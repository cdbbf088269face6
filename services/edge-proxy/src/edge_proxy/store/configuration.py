"""What the edge reads from files at its start: the routes and the endpoint policies."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from edge_proxy.domain import policies, routes
from edge_proxy.domain.policies import Policies
from edge_proxy.domain.routes import Routes
from edge_proxy.domain.surroundings import Surroundings
from edge_proxy.errors import PoliciesError, RoutesError


class Configuration(NamedTuple):
    """What was read."""

    routes: Routes
    policies: Policies


def load_routes(path: Path) -> Routes:
    """Read the routes file.

    Raises:
        RoutesError: it can't be read, or is wrong.

    """
    surroundings = Surroundings(
        variables=os.environ, read_file=lambda name: Path(name).read_text(encoding="utf-8")
    )
    try:
        return routes.parse(path.read_text(encoding="utf-8"), surroundings)
    except (OSError, UnicodeDecodeError) as error:
        raise RoutesError(f"can't be read: {type(error).__name__}") from error
    except RoutesError as error:
        raise RoutesError(f"{path}: {error}") from None


def load_policies(path: Path, endpoints: Collection[str]) -> Policies:
    """Read the policies file; `endpoints` are those there are.

    Raises:
        PoliciesError: it can't be read, or is wrong.

    """
    try:
        return policies.parse(path.read_text(encoding="utf-8"), endpoints)
    except (OSError, UnicodeDecodeError) as error:
        raise PoliciesError(f"can't be read: {type(error).__name__}") from error
    except PoliciesError as error:
        raise PoliciesError(f"{path}: {error}") from None
