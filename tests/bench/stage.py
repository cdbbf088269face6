"""The stack under measurement, who calls it, and the requests they send."""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import httpx
from bench import meters
from bench.load import Load, Measured, Running

from kit.ids import new_id
from kit.keys import new_key
from quotagate.stack import PortPolicy, Stack

MODEL = "gpt-4o-mini"
PROVIDER = "fake"
_FAKE_KEY = b"fake"
_FOLDER = Path(__file__).parents[2] / "build" / "bench"
_TEAMS = 10
# One microsecond of debt a request and less a token: the limits are judged and never in the way.
# A burst of a millisecond, because the server may give two scripts the same microsecond.
_TIER = {"rpm": 60_000_000, "tpm": 60_000_000_000, "request_burst": 1_000}
_CREDIT_USD = "100000"
_PROMPT = "Say in five words what an admission control for language models is good for. " * 4


@dataclass(frozen=True, slots=True)
class Team:
    """A team with one key."""

    team_id: str
    key_id: str
    key: bytes


@dataclass(frozen=True, slots=True)
class Used:
    """What a load gave, and the CPU seconds that each service used meanwhile."""

    measured: Measured
    cpu_s: Mapping[str, float]

    def cpu_ms_per_request(self, service: str) -> float:
        """Return a service's CPU milliseconds for each answer."""
        return self.cpu_s.get(service, 0) / max(1, self.measured.answered) * 1_000


class Stage:
    """A stack that runs, and the teams of the usual load."""

    def __init__(self, stack: Stack, teams: tuple[Team, ...], tier_id: str) -> None:
        self.stack = stack
        self.teams = teams
        self.tier_id = tier_id

    def direct(
        self, connections: int, duration_s: float, *, body: bytes | None = None, **more: object
    ) -> Load:
        """Return a load on the fake provider itself."""
        ports = (self.stack.state.ports["fake-provider"],)
        return _load(ports, (_FAKE_KEY,), connections, duration_s, body, more)

    def gateway(  # what a load may be made of
        self,
        connections: int,
        duration_s: float,
        *,
        body: bytes | None = None,
        teams: tuple[Team, ...] | None = None,
        **more: object,
    ) -> Load:
        """Return a load on every edge that runs."""
        ports = tuple(self.stack.state.ports[name] for name in self.stack.programs_of("edge-proxy"))
        keys = tuple(team.key for team in teams or self.teams)
        return _load(ports, keys, connections, duration_s, body, more)

    def use(self, load: Load) -> Used:
        """Make a load; the meters are read when its warm-up is over, and at its end."""
        running = Running(load)
        before = meters.read(self.stack)
        measured = running.result()
        return Used(measured, meters.read(self.stack).cpu_since(before))

    def open_many(self, count: int) -> tuple[Team, ...]:
        """Open more teams than the admin API is made for, straight in the database."""
        return asyncio.run(_insert_teams(self.stack, self.tier_id, count))


def chat(*, stream: bool = False, **orders: object) -> bytes:
    """Return a request's body; `orders` are those of the fake provider."""
    body: dict[str, object] = {
        "model": MODEL,
        "messages": [{"role": "user", "content": _PROMPT}],
    }
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if orders:
        body["metadata"] = {"fake": json.dumps(orders)}
    return json.dumps(body).encode()


def _load(  # private, called twice
    ports: tuple[int, ...],
    keys: tuple[bytes, ...],
    connections: int,
    duration_s: float,
    body: bytes | None,
    more: Mapping[str, object],
) -> Load:
    body = body or chat()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer "
    tail = (
        b"\r\ncontent-type: application/json\r\naccept: */*\r\ncontent-length: %d\r\n\r\n"
        % len(body)
    ) + body
    return Load(
        ports=ports,
        head=head,
        keys=keys,
        tail=tail,
        connections=connections,
        duration_s=duration_s,
        **more,  # type: ignore[arg-type] # fields of Load by name
    )


@contextlib.contextmanager
def stage(tell: Callable[[str], None], folder: Path = _FOLDER) -> Iterator[Stage]:
    """Start a stack as it is shipped, on free ports, and open the teams; take it down at the end.

    Its stores are below `folder`, and so on that folder's disk.
    """
    stack = Stack(folder / str(os.getpid()), PortPolicy.FREE, dict(os.environ))
    try:
        tell("starting the stack")
        stack.up()
        yield open_stage(stack)
    finally:
        stack.down()
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()


def open_stage(stack: Stack) -> Stage:
    """Open the teams of the usual load in a stack that runs."""
    tier_id = f"bench-{new_id()}"
    admin = httpx.Client(
        base_url=f"{stack.url('control-plane')}/admin/v1",
        headers={"authorization": f"Bearer {stack.state.credentials.admin_token}"},
        timeout=30,
    )
    with admin:
        _send(admin, "PUT", f"/tiers/{tier_id}", _TIER)
        teams = tuple(_open_team(admin, tier_id) for _ in range(_TEAMS))
    return Stage(stack, teams, tier_id)


def _open_team(admin: httpx.Client, tier_id: str) -> Team:
    team_id = f"team-{new_id()}"
    _send(admin, "POST", "/teams", {"team_id": team_id, "tier_id": tier_id})
    credit = {"amount": _CREDIT_USD, "reason": "bench"}
    _send(admin, "POST", f"/teams/{team_id}/credits", credit)
    made = _send(admin, "POST", f"/teams/{team_id}/keys", {"name": "bench"})
    return Team(team_id, made["key_id"], made["key"].encode())


def _send(
    admin: httpx.Client, method: str, path: str, body: Mapping[str, object]
) -> dict[str, str]:
    answer = admin.request(method, path, json=body)
    answer.raise_for_status()
    told: dict[str, str] = answer.json() if answer.content else {}
    return told


async def _insert_teams(stack: Stack, tier_id: str, count: int) -> tuple[Team, ...]:
    pepper = stack.state.credentials.key_pepper
    made = [(f"many-{new_id()}", new_key(pepper)) for _ in range(count)]
    database = await asyncpg.connect(stack.servers.database_url)
    try:
        async with database.transaction():
            await database.copy_records_to_table(
                "team",
                records=[(team_id, team_id, tier_id) for team_id, _ in made],
                columns=("team_id", "name", "tier_id"),
            )
            await database.execute(
                "SELECT account_credit(team_id, 'CREDIT', $1::numeric, NULL, 'bench')"
                " FROM team WHERE team_id = ANY ($2)",
                1_000,
                [team_id for team_id, _ in made],
            )
            await database.copy_records_to_table(
                "api_key",
                records=[
                    (key.key_id, team_id, "bench", bytes.fromhex(key.secret_hash))
                    for team_id, key in made
                ],
                columns=("key_id", "team_id", "name", "secret_hash"),
            )
        await database.execute("ANALYZE team, account, api_key")
    finally:
        await database.close()
    return tuple(Team(team_id, key.key_id, key.text.encode()) for team_id, key in made)
