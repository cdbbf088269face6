"""A connection that can't be made says so, instead of trying for ever."""

import pytest
from pydantic import SecretStr

from kit.bus.connection import connection
from kit.errors import NotReadyError
from quotagate.stack import Servers

from .conftest import nats_settings


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(
            {"nats_url": "nats://127.0.0.1:1"},
            "nats: ConnectionRefusedError",
            id="nobody listens",
        ),
        pytest.param(
            {"nats_url": "nats://127.0.0.1:1,nats://127.0.0.1:2"},
            "nats: ConnectionRefusedError",
            id="nobody listens at two addresses",
        ),
        pytest.param(
            {"nats_password": SecretStr("wrong")},
            "nats: Authorization Violation",
            id="wrong password",
        ),
    ],
)
async def test_a_connection_that_cannot_be_made_says_why(
    servers: Servers, change: dict[str, object], reason: str
) -> None:
    settings = nats_settings(servers).model_copy(update=change)
    with pytest.raises(NotReadyError, match=reason):
        async with connection(settings, "test"):
            pass


async def test_one_of_several_addresses_is_enough(servers: Servers) -> None:
    settings = nats_settings(servers)
    both = settings.model_copy(update={"nats_url": f"nats://127.0.0.1:1,{settings.nats_url}"})
    async with connection(both, "test") as client:
        assert client.is_connected
