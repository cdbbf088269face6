"""Connections to the real NATS server, as a service makes them."""

from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client

from kit.bus.connection import connection
from kit.settings import NatsSettings, load
from quotagate.stack import Servers


def nats_settings(servers: Servers) -> NatsSettings:
    return load(
        NatsSettings,
        {
            "QUOTAGATE_PORT": "0",
            "QUOTAGATE_NATS_URL": servers.nats_url,
            "QUOTAGATE_NATS_MONITOR_URL": servers.nats_monitor_url,
            "QUOTAGATE_NATS_USER": "operator",
            "QUOTAGATE_NATS_PASSWORD": servers.nats_passwords["operator"],
        },
    )


@pytest.fixture
async def nats(servers: Servers) -> AsyncIterator[Client]:
    async with connection(nats_settings(servers), "test") as client:
        yield client
