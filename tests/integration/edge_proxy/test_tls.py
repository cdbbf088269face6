"""Providers behind TLS: whom the edge believes, and what becomes of a call to anybody else."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from integration.edge_proxy.certificates import Authority, Certificate
from integration.edge_proxy.tls_front import Front, connect_proxy, tls_front
from integration.edge_proxy.world import World
from integration.edge_proxy.world import world as new_world
from integration.fake_provider.process import API_KEY

from contracts.inference import Outcome, UsageSource
from quotagate.stack import Stack

STREAM = {"stream": True}
PROVIDER = """
[providers.{name}]
adapter = "openai"
base_url = "https://{host}:{port}/v1"
api_key_env = "FAKE_KEY"
connect_s = {connect_s}
{ca}
[models.{name}]
deployments = [{{ provider = "{name}", model = "{name}" }}]
"""


@dataclass(frozen=True, slots=True)
class Bystander:
    """Listens where TLS is expected, and says nothing or the wrong thing."""

    port: int
    heard: bytearray


@dataclass(frozen=True, slots=True)
class TlsWorld:
    """An edge, and providers of every kind of trustworthiness by the names of their models."""

    world: World
    fronts: Mapping[str, Front]
    bystanders: Mapping[str, Bystander]


@contextlib.asynccontextmanager
async def bystander(answer: bytes) -> AsyncIterator[Bystander]:
    heard = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                heard.extend(data)
                writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Bystander(server.sockets[0].getsockname()[1], heard)
    finally:
        server.close()


def certificates(folder: Path) -> tuple[Path, Path, dict[str, Certificate]]:
    """Return the file of our authority, that of the machine's, and each front's certificate."""
    ours, machines = Authority(folder, "ours"), Authority(folder, "machines")
    strangers = Authority(folder, "strangers")
    localhost = "DNS:localhost"
    made = {
        "private": ours.vouch("private", localhost),
        "by-address": ours.vouch("by-address", "IP:127.0.0.1"),
        "public": machines.vouch("public", localhost),
        "wrong-name": ours.vouch("wrong-name", "DNS:provider.example"),
        "only-a-name": ours.vouch("only-a-name", localhost),
        "expired": ours.vouch("expired", localhost, days=-1),
        "unknown": strangers.vouch("unknown", localhost),
        "elsewhere-known": machines.vouch("elsewhere-known", localhost),
        "privately-known": ours.vouch("privately-known", localhost),
        "self-signed": strangers.certificate,
        "proxied": ours.vouch("proxied", localhost),
        "proxied-public": machines.vouch("proxied-public", localhost),
    }
    return ours.certificate.pem, machines.certificate.pem, made


@pytest.fixture(scope="module")
async def tls(
    module_servers: Stack, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[TlsWorld]:
    folder = tmp_path_factory.mktemp("tls")
    ours, machines, made = await asyncio.to_thread(certificates, folder)
    routes = folder / "tls.toml"
    settings = {
        "QUOTAGATE_ROUTES_FILE": str(routes),
        # What this machine trusts.
        "SSL_CERT_FILE": str(machines),
    }
    async with contextlib.AsyncExitStack() as stack:
        fronts = {
            name: await stack.enter_async_context(tls_front(certificate, 0))
            for name, certificate in made.items()
        }
        bystanders = {
            "silent": await stack.enter_async_context(bystander(b"")),
            "plain": await stack.enter_async_context(bystander(b"HTTP/1.1 200 OK\r\n\r\n")),
        }
        listeners: dict[str, Front | Bystander] = {**fronts, **bystanders}
        proxy = await stack.enter_async_context(connect_proxy())
        believed = f'ca_file = "{ours}"'
        by_machine = {"public", "unknown", "self-signed", "privately-known"}
        by_address = {"by-address", "only-a-name"}
        text = "".join(
            PROVIDER.format(
                name=name,
                host="127.0.0.1" if name in by_address else "localhost",
                port=each.port,
                connect_s=0.5 if name == "silent" else 20,
                ca=("" if name in by_machine else believed)
                + (f'\nproxy = "{proxy}"' if name.startswith("proxied") else ""),
            )
            for name, each in listeners.items()
        )
        await asyncio.to_thread(routes.write_text, text, encoding="utf-8")
        world = await stack.enter_async_context(
            new_world(module_servers.servers, folder, settings=settings)
        )
        for front in fronts.values():
            front.behind_port = int(world.provider.base_url.rpartition(":")[2])
        yield TlsWorld(world, fronts, bystanders)
        assert "Traceback" not in world.edge.log(), world.edge.log()


@pytest.mark.parametrize("more", [{}, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "model",
    [
        pytest.param("private", id="our own authority vouches for the name"),
        pytest.param("by-address", id="our own authority vouches for the address"),
        pytest.param("public", id="an authority that the machine trusts"),
        pytest.param("proxied", id="our own authority vouches, behind a proxy"),
    ],
)
async def test_who_is_vouched_for_is_called(
    tls: TlsWorld, model: str, more: dict[str, Any]
) -> None:
    team = tls.world.team()
    answer = await tls.world.ask(
        team, model=model, more=more, prompt_tokens=11, completion_tokens=7, chunk_count=3
    )
    assert answer.status_code == 200, answer.text
    assert answer.text.rstrip().endswith("data: [DONE]" if more else "}")
    record = await tls.world.records.one(team.team_id)
    assert (record.outcome, record.usage_source) == (Outcome.SUCCEEDED, UsageSource.PROVIDER)
    assert record.usage is not None
    assert (record.usage.input, record.usage.output) == (11, 7)
    front = tls.fronts[model]
    assert API_KEY.encode() in front.received
    assert front.versions <= {"TLSv1.2", "TLSv1.3"}


async def test_a_connection_is_used_again(tls: TlsWorld) -> None:
    front = tls.fronts["private"]
    for _ in range(3):
        assert (await tls.world.ask(tls.world.team(), model="private")).status_code == 200
    assert front.connections == 1


@pytest.mark.parametrize("more", [{}, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("model", "why"),
    [
        pytest.param("wrong-name", "Hostname mismatch", id="another's name"),
        pytest.param("only-a-name", "IP address mismatch", id="a name where an address is called"),
        pytest.param("expired", "certificate has expired", id="expired"),
        pytest.param("unknown", "unable to get local issuer", id="an authority nobody knows"),
        pytest.param("elsewhere-known", "unable to get local issuer", id="not the private one"),
        pytest.param("privately-known", "unable to get local issuer", id="not the machine's"),
        pytest.param("proxied-public", "UnknownIssuer", id="not the private one, behind a proxy"),
        pytest.param("self-signed", "self-signed certificate", id="vouches for itself"),
        pytest.param("plain", "SSL", id="speaks no TLS"),
        pytest.param("silent", "TimeoutError", id="never answers the handshake"),
    ],
)
async def test_anybody_else_is_a_provider_that_is_not_reached_and_is_told_nothing(
    tls: TlsWorld, model: str, why: str, more: dict[str, Any]
) -> None:
    team = tls.world.team()
    answer = await tls.world.ask(team, model=model, more=more)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (502, "provider_unreachable")
    assert answer.headers["x-quotagate-error-source"] == "upstream"
    record = await tls.world.records.one(team.team_id)
    assert (record.outcome, record.status_code) == (Outcome.FAILED, None)
    assert record.usage_source is UsageSource.MISSING
    assert tls.world.stand_ins.postflights_of(team.team_id) == []
    if model in tls.fronts:
        assert not tls.fronts[model].received
    else:
        # A greeting of TLS, and nothing that anybody could read.
        heard = tls.bystanders[model].heard
        assert heard.startswith(b"\x16\x03")
        for secret in (API_KEY, "three words here", "chat/completions"):
            assert secret.encode() not in heard
    logged = [line for line in tls.world.edge.log().splitlines() if "provider not reached" in line]
    assert any(f'"{model}"' in line and why in line for line in logged), logged
    assert why not in answer.text
