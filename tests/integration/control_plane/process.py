"""The control plane as a process of its own, and an operator's client of its API."""

import contextlib
import signal
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx
from integration.services import ServiceProcess

from quotagate.stack import Servers

ADMIN_TOKEN = "an admin token for tests"
KEY_PEPPER = "a pepper for tests only"
API = "/admin/v1"


class ControlPlane(ServiceProcess):
    """`python -m control_plane`."""

    def __init__(
        self, servers: Servers, folder: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        secrets = {"QUOTAGATE_ADMIN_TOKEN": ADMIN_TOKEN, "QUOTAGATE_KEY_PEPPER": KEY_PEPPER}
        super().__init__(servers, "control-plane", folder, secrets | dict(settings or {}))

    def terminate(self) -> None:
        """Tell it to stop."""
        self.signal(signal.SIGTERM)

    def operator(self) -> httpx.AsyncClient:
        """Return a client with the admin token; its addresses begin behind `/admin/v1`."""
        return httpx.AsyncClient(
            base_url=self.url + API,
            headers={"Authorization": f"Bearer {ADMIN_TOKEN}"},
            timeout=30,
        )


@contextlib.asynccontextmanager
async def running(
    servers: Servers, folder: Path, settings: Mapping[str, str] | None = None
) -> AsyncIterator[ControlPlane]:
    """Hold a control plane of one's own; it answers, and may not be ready."""
    process = ControlPlane(servers, folder, settings)
    await process.start()
    try:
        yield process
    finally:
        await process.stop()
