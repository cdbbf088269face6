"""What the machines have in common that hold the scripts to a model over random histories.

The server's clock can't be moved, so time passes by moving what is stored into the past.
"""

import asyncio
import uuid
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from integration.redis_scripts.clients import connect
from integration.redis_scripts.team import Team
from redis.asyncio import Redis

from quotagate.stack import Servers
from redis_scripts import RedisScripts

T = TypeVar("T")


class OneTeam(RuleBasedStateMachine):
    """One team with an empty balance on a real server, the scripts, and who may look past them."""

    url: str

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.client = connect(self.url)
        self.operator: Redis = Redis.from_url(self.url)
        self.scripts = RedisScripts(self.client)
        self.team = Team(f"agree-{uuid.uuid4().hex}", self.operator)
        self.wait(self.team.put(balance_nano_usd=0))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it, on the loop of this history."""
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        """Leave nothing open."""
        self.wait(self.scripts.drain())
        self.wait(self.client.aclose())
        self.wait(self.operator.aclose())
        self.loop.close()


def agree(
    machine: type[OneTeam], servers: Servers, *, histories: int, steps: int, shorten: bool = False
) -> None:
    """Run so many histories of so many steps.

    One that fails is mostly not shortened: the clock goes on, so a shorter one seldom fails alike.
    """
    here = type(f"{machine.__name__}Here", (machine,), {"url": servers.redis_url})
    run_state_machine_as_test(
        here,
        settings=settings(
            max_examples=histories,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            phases=tuple(Phase) if shorten else (Phase.generate,),
            suppress_health_check=list(HealthCheck),
        ),
    )
