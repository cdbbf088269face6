"""One service as a process of its own beside the test servers, with the rights it ships with."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx

from quotagate.stack import Servers, Stack
from quotagate.stack.ports import HOST, PortPolicy, choose

_START_S = 30
_LISTENS = "0A"


def environment(servers: Servers, service: str) -> dict[str, str]:
    """Return what the service reads to reach these servers."""
    variables = {
        "QUOTAGATE_PORT": "0",
        "QUOTAGATE_GRACE_S": "5",
        "QUOTAGATE_NATS_URL": servers.nats_url,
        "QUOTAGATE_NATS_MONITOR_URL": servers.nats_monitor_url,
        "QUOTAGATE_NATS_USER": service,
        "QUOTAGATE_NATS_PASSWORD": servers.nats_passwords[service],
    }
    if service in servers.redis_urls:
        variables["QUOTAGATE_REDIS_URL"] = servers.redis_urls[service]
    role = f"quotagate_{service.replace('-', '_')}"
    if role in servers.database_urls:
        variables["QUOTAGATE_DATABASE_URL"] = servers.database_urls[role]
    return variables


def mend(stack: Stack) -> None:
    """Bring back what a failed test left frozen or stopped."""
    for status in stack.status():
        if status.is_wanted:
            stack.signal(status.name, "CONT")
        else:
            stack.start(status.name)


class ServiceProcess:
    """`python -m <service>`; its port stays the same over restarts."""

    def __init__(
        self,
        servers: Servers,
        service: str,
        folder: Path,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._service = service
        self._port = choose([service], PortPolicy.FREE, {}, {})[service]
        self._log = folder / f"{service}-{self._port}.log"
        self._environment = {
            **{name: value for name, value in os.environ.items() if "QUOTAGATE" not in name},
            **environment(servers, service),
            "QUOTAGATE_PORT": str(self._port),
            **(settings or {}),
        }
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self._port}"

    async def start(self) -> None:
        """Start it; returns when it answers on its port, ready or not."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", self._service.replace("-", "_")),
                env=self._environment,
                stdout=log,
                stderr=log,
            )
        async with asyncio.timeout(_START_S), httpx.AsyncClient() as client:
            while not (self._listens() and await self._lives(client)):
                assert self._process.returncode is None, self.log()
                await asyncio.sleep(0.02)

    async def start_ready(self) -> None:
        """Start it; returns when it is ready."""
        await self.start()
        await self.becomes_ready()

    async def becomes_ready(self) -> None:
        """Return once it is ready."""
        async with asyncio.timeout(_START_S):
            while reasons := await self.problems():
                assert self._process is not None
                assert self._process.returncode is None, f"{reasons} {self.log()}"
                await asyncio.sleep(0.02)

    async def becomes_unready(self, reason: str) -> dict[str, str]:
        """Return what it says once it isn't ready for this reason."""
        async with asyncio.timeout(_START_S):
            while True:
                reasons = await self.problems()
                if reason in reasons:
                    return reasons
                await asyncio.sleep(0.02)

    async def becomes_more(self, sample: str, than: float = 0) -> None:
        """Return once a sample of `/metrics` is more."""
        async with asyncio.timeout(_START_S):
            while True:
                if await self.metric(sample) > than:
                    return
                await asyncio.sleep(0.02)

    async def problems(self) -> dict[str, str]:
        """Return why it isn't ready; empty: it is."""
        async with httpx.AsyncClient() as client:
            answer = await client.get(f"http://{HOST}:{self._port}/health/ready", timeout=_START_S)
        reasons: dict[str, str] = answer.json().get("reasons", {})
        assert (answer.status_code == httpx.codes.OK) == (not reasons)
        return reasons

    async def metric(self, sample: str) -> float:
        """Return one sample of `/metrics`, 0 where there is none yet."""
        async with httpx.AsyncClient() as client:
            answer = await client.get(f"http://{HOST}:{self._port}/metrics")
        for line in answer.text.splitlines():
            name, _, value = line.rpartition(" ")
            if name == sample:
                return float(value)
        return 0.0

    def peak_bytes(self) -> int:
        """Return the most memory that it has held so far, as the kernel counts it."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    async def ended(self) -> int:
        """Wait until it has ended; return its status."""
        assert self._process is not None
        return await self._process.wait()

    async def stop(self) -> None:
        """End it, however it is."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def log(self) -> str:
        """Return what it has written."""
        return self._log.read_text(encoding="utf-8")

    def _listens(self) -> bool:
        """Tell whether it is this process that listens on the port.

        Between our choice of a port and its start, a run beside ours may have taken it; whatever
        is asked there then, another process answers.
        """
        assert self._process is not None
        held = set()
        for descriptor in Path(f"/proc/{self._process.pid}/fd").glob("*"):
            with contextlib.suppress(OSError):
                held.add(descriptor.readlink().name)
        for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            at, state, inode = fields[1], fields[3], fields[9]
            if state == _LISTENS and int(at.rpartition(":")[2], 16) == self._port:
                return f"socket:[{inode}]" in held
        return False

    async def _lives(self, client: httpx.AsyncClient) -> bool:
        try:
            answer = await client.get(f"http://{HOST}:{self._port}/health/live")
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK
