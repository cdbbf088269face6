"""An edge as a process, and everything around it: a bus, two stand-ins, providers, teams."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from integration.bus import nats_settings
from integration.edge_proxy.records import Records
from integration.edge_proxy.stand_ins import StandIns
from integration.fake_provider.process import API_KEY, FakeProcess
from integration.fake_provider.witness import Witness
from integration.services import ServiceProcess
from nats.aio.client import Client

from contracts.cache import KeyFacts
from fake_provider.behaviour import fake
from kit.bus.connection import connection
from kit.ids import new_id
from kit.keys import new_key
from quotagate.stack import Servers

CHAT = "/v1/chat/completions"
PEPPER = "a pepper for these tests"
MODEL = "plain"
MESSAGES: list[Any] = [{"role": "user", "content": "three words here"}]

ROUTES = """
[providers.fake]
adapter = "openai"
base_url = "{fake}/v1"
api_key_env = "FAKE_KEY"

[providers.simple]
adapter = "openai"
base_url = "{fake}/v1"
api_key_env = "FAKE_KEY"
supports_stream_usage = false

[providers.claude]
adapter = "anthropic"
base_url = "{fake}/v1"
api_key_env = "FAKE_KEY"

[providers.locked]
adapter = "openai"
base_url = "{fake}/v1"

[providers.nowhere]
adapter = "openai"
base_url = "http://127.0.0.1:1/v1"

[providers.raw]
adapter = "openai"
base_url = "{raw}/v1"

[models.plain]
deployments = [{{ provider = "fake", model = "plain" }}]
[models.claude]
deployments = [{{ provider = "claude", model = "claude" }}]
[models.both]
deployments = [
    {{ provider = "claude", model = "claude" }},
    {{ provider = "fake", model = "plain" }},
]
[models.renamed]
deployments = [{{ provider = "fake", model = "the-deployments-name" }}]
[models.simple]
deployments = [{{ provider = "simple", model = "simple" }}]
[models.locked]
deployments = [{{ provider = "locked", model = "locked" }}]
[models.nowhere]
deployments = [{{ provider = "nowhere", model = "nowhere" }}]
[models.raw]
deployments = [{{ provider = "raw", model = "raw" }}]
[[models.raw-impatient.deployments]]
provider = "raw"
model = "raw"
timeouts = {{ idle_s = 0.3 }}
[[models.impatient.deployments]]
provider = "fake"
model = "impatient"
timeouts = {{ first_byte_s = 1, idle_s = 1 }}
[[models.brief.deployments]]
provider = "fake"
model = "brief"
timeouts = {{ total_s = 0.5 }}

[models.persistent]
deployments = [{{ provider = "fake", model = "persistent" }}]
retry = {{ attempts = 3, backoff_ms = 1 }}
[models.pair]
deployments = [{{ provider = "fake", model = "one" }}, {{ provider = "fake", model = "two" }}]
[models.far-and-near]
deployments = [
    {{ provider = "nowhere", model = "far" }},
    {{ provider = "locked", model = "closed" }},
    {{ provider = "fake", model = "near" }},
]
[models.slow-and-quick]
deployments = [
    {{ provider = "raw", model = "slow", timeouts = {{ first_byte_s = 0.3 }} }},
    {{ provider = "fake", model = "quick" }},
]
[models.patient]
deployments = [{{ provider = "fake", model = "patient" }}]
retry = {{ attempts = 2, backoff_ms = 60000, backoff_max_ms = 60000, wait_s = 600 }}
"""


class EdgeProcess(ServiceProcess):
    """`python -m edge_proxy`."""

    def __init__(
        self,
        servers: Servers,
        folder: Path,
        addresses: Mapping[str, str],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        routes = folder / "routes.toml"
        routes.write_text(ROUTES.format(**addresses), encoding="utf-8")
        self.data_dir = folder / "data"
        super().__init__(
            servers,
            "edge-proxy",
            folder,
            {
                "FAKE_KEY": API_KEY,
                "QUOTAGATE_KEY_PEPPER": PEPPER,
                "QUOTAGATE_ROUTES_FILE": str(routes),
                "QUOTAGATE_DATA_DIR": str(self.data_dir),
                # A busy machine doesn't fail a test that isn't about time.
                "QUOTAGATE_PREFLIGHT_TIMEOUT_MS": "10000",
                "QUOTAGATE_POSTFLIGHT_TIMEOUT_MS": "10000",
                "QUOTAGATE_KEY_LOOKUP_TIMEOUT_MS": "10000",
                **(settings or {}),
            },
        )

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    def kill(self) -> None:
        """End it as the kernel would."""
        self.signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Tell it to stop."""
        self.signal(signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Team:
    """A team of one test, and its key."""

    team_id: str
    key_id: str
    key: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """What its client sends."""
        return {"authorization": f"Bearer {self.key}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything a test of the edge touches."""

    servers: Servers
    edge: EdgeProcess
    http: httpx.AsyncClient
    stand_ins: StandIns
    bus: Client
    """With the operator's rights."""
    records: Records
    provider: FakeProcess
    witness: Witness

    def team(self, **facts: Any) -> Team:
        """Return a new team, whose key has these facts."""
        made = new_key(PEPPER)
        team_id = f"team-{new_id()}"
        known = {"key_id": made.key_id, "team_id": team_id, "secret_hash": made.secret_hash}
        self.stand_ins.keys[made.key_id] = KeyFacts(**(known | facts))
        return Team(team_id, made.key_id, made.text)

    async def ask(
        self, team: Team, *, model: str = MODEL, more: Mapping[str, Any] | None = None, **knobs: Any
    ) -> httpx.Response:
        """Ask for a chat completion with these orders to the fake provider."""
        return await self.http.post(
            CHAT, headers=team.headers, json=asked(team, model=model, more=more, **knobs)
        )

    async def hits(self, team: Team) -> int:
        """Return how often the provider was called for a team."""
        count: int = (await self.witness.counts(marker=team.team_id))["requests"]
        return count


def asked(
    team: Team, *, model: str = MODEL, more: Mapping[str, Any] | None = None, **knobs: Any
) -> dict[str, Any]:
    """Return a body with orders to the fake provider, which remembers it under the team's id."""
    metadata = fake(marker=team.team_id, **knobs)
    return {"model": model, "messages": MESSAGES, "metadata": metadata, **(more or {})}


@contextlib.asynccontextmanager
async def world(
    servers: Servers,
    folder: Path,
    raw_address: str = "http://127.0.0.1:1",
    *,
    alone: bool = False,
    settings: Mapping[str, str] | None = None,
) -> AsyncIterator[World]:
    """Hold a world of one's own, with an edge that is ready; `alone`, without its stand-ins."""
    stand_ins = StandIns()
    provider = FakeProcess(folder)
    async with contextlib.AsyncExitStack() as stack:
        await provider.start()
        stack.push_async_callback(provider.stop)
        bus = await stack.enter_async_context(
            connection(nats_settings(servers, "operator"), "test of the edge")
        )
        edge = EdgeProcess(
            servers, folder, {"fake": provider.base_url, "raw": raw_address}, settings
        )
        stack.push_async_callback(edge.stop)
        if alone:
            await edge.start()
        else:
            await stack.enter_async_context(stand_ins.admission(servers))
            await stack.enter_async_context(stand_ins.tier_cache(servers))
            await edge.start_ready()
        http = await stack.enter_async_context(httpx.AsyncClient(base_url=edge.url, timeout=60))
        witness = Witness(provider.base_url)
        stack.push_async_callback(witness.close)
        yield World(
            servers=servers,
            edge=edge,
            http=http,
            stand_ins=stand_ins,
            bus=bus,
            records=Records(bus),
            provider=provider,
            witness=witness,
        )


async def eventually(condition: Callable[[], Awaitable[bool]], patience_s: float = 20.0) -> None:
    """Return once an awaitable condition holds."""
    async with asyncio.timeout(patience_s):
        while not await condition():
            await asyncio.sleep(0.02)
