"""The system under fault: a stack of its own behind wires, with a small disk for the edges."""

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import asyncpg
import nats
from faults.strikes.fault import REPLICAS
from faults.wiring import Wiring
from nats.aio.client import Client
from redis.asyncio import Redis

from quotagate.stack import PortPolicy, Stack

_BUILD = Path(__file__).parents[2] / "build"
_LOGS = _BUILD / "faults-logs"
# The edges' spool and journals, with room for both to compact their journals (4 MB each).
_DISK_BYTES = 24 * 1024**2
_CALL_TIMEOUT_S = 5

ROUTES = """
[providers.fake]
adapter = "openai"
base_url = "${QUOTAGATE_FAKE_PROVIDER_URL}/v1"
api_key_env = "QUOTAGATE_FAKE_PROVIDER_KEY"
timeouts = { first_byte_s = 4, idle_s = 4, total_s = 20 }

[models.small]
deployments = [{ provider = "fake", model = "small-1" }]

[models.large]
deployments = [{ provider = "fake", model = "large-1" }]
"""

# Shorter than what a service is shipped with, so that a run of minutes sees what hours would.
_PACE: Mapping[str, Mapping[str, str]] = {
    "edge-proxy": {"QUOTAGATE_HAND_OFF_S": "4", "QUOTAGATE_DRAIN_S": "5"},
    "settlement": {"QUOTAGATE_ACK_WAIT_S": "6", "QUOTAGATE_RECONCILE_INTERVAL_S": "4"},
    "control-plane": {"QUOTAGATE_OUTBOX_ACK_TIMEOUT_S": "1"},
}


class SmallDisk:
    """A file system of its own that can be filled up; only root may make one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_small = False

    def open(self) -> None:
        """Mount it, where that is allowed; otherwise it is a folder like any other."""
        self.path.mkdir(parents=True)
        options = ["-t", "tmpfs", "-o", f"size={_DISK_BYTES},mode=0700", "quotagate-faults"]
        self.is_small = _run("mount", *options, self.path) if os.geteuid() == 0 else False

    def close(self) -> None:
        """Unmount it; what was on it is gone."""
        if self.is_small:
            _run("umount", "--lazy", self.path)

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Leave no byte free on it."""
        ballast = self.path / ".ballast"
        block = bytes(4096)
        try:
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(block)
            yield
        finally:
            ballast.unlink(missing_ok=True)


def _run(program: str, *arguments: str | Path) -> bool:
    found = shutil.which(program)
    if found is None:
        return False
    answer = subprocess.run(  # noqa: S603 - the commands are ours
        [found, *arguments], capture_output=True, check=False
    )
    return answer.returncode == 0


class World:
    """Everything that runs, by its parts."""

    def __init__(self, name: str) -> None:
        """Choose the places; nothing runs yet."""
        self.folder = _BUILD / "faults" / f"{os.getpid()}-{name}"
        self.wiring = Wiring()
        self.disk = SmallDisk(self.folder / "edges")
        self.crash_folder = self.folder / "crash"
        self.journal = self.folder / "provider.jsonl"
        self.stack = Stack(
            _BUILD / "test-stacks" / f"{os.getpid()}-{name}",
            PortPolicy.FREE,
            rewire=self._rewire,
        )

    def _rewire(self, program: str, environment: Mapping[str, str]) -> Mapping[str, str]:
        service = program.rstrip("-0123456789")
        led = {**self.wiring.rewire(program, environment), **_PACE.get(service, {})}
        led["QUOTAGATE_CRASH_AT"] = self._seen_from_stack(self.crash_folder)
        if service == "fake-provider":
            led["QUOTAGATE_FAKE_JOURNAL"] = self._seen_from_stack(self.journal)
        if service == "edge-proxy":
            # One folder for all of them, so that each may inherit from any other.
            led["QUOTAGATE_DATA_DIR"] = self._seen_from_stack(self.disk.path)
            led["QUOTAGATE_ROUTES_FILE"] = self._seen_from_stack(self.folder / "routes.toml")
        return led

    def _seen_from_stack(self, path: Path) -> str:
        """Return a path relative to where programs run, whatever the folders above are called."""
        return os.path.relpath(path, self.stack.directory)

    async def open(self) -> None:
        """Bring everything up, healthy."""
        _remove_leftovers()
        self.folder.mkdir(parents=True)
        _LOGS.mkdir(parents=True, exist_ok=True)
        self.crash_folder.mkdir()
        self.disk.open()
        (self.folder / "routes.toml").write_text(ROUTES, encoding="utf-8")
        await asyncio.to_thread(self.stack.up, counts=REPLICAS)
        for edge in ("edge-proxy", "edge-proxy-2"):
            self.wiring.link(f"clients>{edge}", ("127.0.0.1", self.stack.state.ports[edge]))

    async def close(self) -> None:
        """Take everything down and remove it."""
        await asyncio.to_thread(self.stack.down)
        self.wiring.close()
        self.disk.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep_logs(self) -> Path:
        """Copy everybody's logs to where they outlive the world; return the folder."""
        kept = _LOGS / self.folder.name
        shutil.copytree(self.stack.directory / "logs", kept, dirs_exist_ok=True)
        return kept

    def edge_address(self, edge: str) -> tuple[str, int]:
        """Return where clients find an edge: at the end of their wire to it."""
        return "127.0.0.1", self.wiring.links[f"clients>{edge}"].port

    @contextlib.asynccontextmanager
    async def nats(self) -> AsyncIterator[Client]:
        """Connect to NATS as the operator, past all wires, without trying again."""
        servers = self.stack.servers
        client = await nats.connect(
            servers.nats_url,
            user="operator",
            password=servers.nats_passwords["operator"],
            allow_reconnect=False,
            connect_timeout=_CALL_TIMEOUT_S,
        )
        try:
            yield client
        finally:
            await client.close()

    @contextlib.asynccontextmanager
    async def postgres(self) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
        """Connect to Postgres as the owner, past all wires."""
        connection = await asyncpg.connect(
            self.stack.servers.database_url, timeout=_CALL_TIMEOUT_S, ssl=False
        )
        try:
            yield connection
        finally:
            await connection.close(timeout=_CALL_TIMEOUT_S)

    @contextlib.asynccontextmanager
    async def valkey(self) -> AsyncIterator[Redis]:
        """Connect to Valkey as the operator, past all wires."""
        client = Redis.from_url(self.stack.servers.redis_url, socket_timeout=_CALL_TIMEOUT_S)
        try:
            yield client
        finally:
            await client.aclose()


def _remove_leftovers() -> None:
    """Unmount and remove what runs left that were killed before they could."""
    for folder in (_BUILD / "faults").glob("*-*"):
        pid = folder.name.partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            _run("umount", "--lazy", folder / "edges")
            shutil.rmtree(folder, ignore_errors=True)
            Stack(_BUILD / "test-stacks" / folder.name, PortPolicy.FREE).down()
