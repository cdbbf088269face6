"""Everything that a fault may reach."""

from collections.abc import Sequence
from dataclasses import dataclass

from faults.load.clients import Clients
from faults.load.office import Office
from faults.load.teams import Team
from faults.world import World


@dataclass(frozen=True, slots=True)
class Scene:
    """The world, its clients and its operator."""

    world: World
    teams: Sequence[Team]
    clients: Clients
    office: Office

    @property
    def team_ids(self) -> frozenset[str]:
        """Return the ids of all teams."""
        return frozenset(team.team_id for team in self.teams)
