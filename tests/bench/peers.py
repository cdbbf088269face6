"""Other gateways under the same load, in the same run: `python -m bench.peers`.

Beside them runs the least that ours could be (`bench.bare`), so that a ratio says whether the work
or the language is what it costs.

The peers come from their own packages, which `make bench-peers` installs into build/peers; nothing
of theirs is in this repository. Portkey's gateway only passes requests on: it has no limits, no
balances and no records. LiteLLM's proxy counts requests and tokens in Redis, as its limits need,
and keeps no record either: neither can be asked for all that ours does meanwhile.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from bench.figures import Figures
from bench.load import Load
from bench.quantiles import latencies
from bench.stage import MODEL, Stage, chat, stage
from msgspec.structs import replace

_FOLDER = Path(__file__).parents[2] / "build" / "peers"
_OUT = _FOLDER.parent / "bench-peers.json"
_HOST = "127.0.0.1"
_LITELLM_KEY = "sk-bench"
_START_S = 90.0
_WARM_UP_S = 3.0
_DURATION_S = 8.0
_ALONE_S = 3.0
_CLIENTS = 32
_NEVER_REACHED = 10**9
_PORTKEY_MODULE = Path("node_modules/@portkey-ai/gateway")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a peer may use."""

    provider_url: str
    """With /v1."""
    redis_url: str
    stack: Path
    """The folder of the stack that all of them run beside."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another gateway: how it is started, and how it is asked."""

    name: str
    command: Callable[[int, Surroundings], Sequence[str]]
    """Takes its port."""
    headers: Callable[[Surroundings], dict[str, str]]


def _litellm(port: int, around: Surroundings) -> Sequence[str]:
    page = _FOLDER / "litellm.yaml"
    deployment = {
        "model": f"openai/{MODEL}",
        "api_base": around.provider_url,
        "api_key": "fake",
        "rpm": _NEVER_REACHED,
        "tpm": _NEVER_REACHED,
    }
    page.write_text(  # JSON is YAML
        json.dumps(
            {
                "model_list": [{"model_name": MODEL, "litellm_params": deployment}],
                "general_settings": {"master_key": _LITELLM_KEY},
                "router_settings": {
                    "routing_strategy": "usage-based-routing-v2",
                    "redis_url": around.redis_url,
                },
            }
        ),
        encoding="utf-8",
    )
    program = str(_FOLDER / "litellm" / "bin" / "litellm")
    return (program, "--config", str(page), "--host", _HOST, "--port", str(port))


def _portkey(port: int, _around: Surroundings) -> Sequence[str]:
    script = _FOLDER / "portkey" / _PORTKEY_MODULE / "build" / "start-server.js"
    return ("node", str(script), "--headless", f"--port={port}")


def _bare(port: int, around: Surroundings) -> Sequence[str]:
    return (sys.executable, "-m", "bench.bare", str(port), around.provider_url)


def _bare_with_messages(port: int, around: Surroundings) -> Sequence[str]:
    return (*_bare(port, around), "--messages", str(around.stack))


PEERS = (
    Peer("litellm", _litellm, lambda _around: {"authorization": f"Bearer {_LITELLM_KEY}"}),
    Peer(
        "portkey",
        _portkey,
        lambda around: {
            "authorization": "Bearer fake",
            "x-portkey-provider": "openai",
            "x-portkey-custom-host": around.provider_url,
        },
    ),
)
BARE = (
    Peer("bare", _bare, lambda _around: {}),
    Peer("bare_with_messages", _bare_with_messages, lambda _around: {}),
)


def measure(standing: Stage, figures: Figures) -> None:
    """Measure ourselves, each peer, and ourselves again."""
    stack = standing.stack
    provider_url = f"http://{_HOST}:{stack.state.ports['fake-provider']}/v1"
    around = Surroundings(provider_url, stack.servers.redis_url, stack.directory)
    _keep(figures, "direct", standing, standing.direct(_CLIENTS, _DURATION_S))
    alone = standing.gateway(1, _ALONE_S, warm_up_s=_WARM_UP_S)
    _keep_alone(figures, "gateway", standing, alone)
    ours = standing.gateway(_CLIENTS, _DURATION_S, warm_up_s=_WARM_UP_S)
    _keep(figures, "gateway", standing, ours)
    for peer in (*PEERS, *BARE):
        with _running(peer, around) as port:
            load = _load(port, peer.headers(around))
            _keep(figures, peer.name, standing, load)
            _keep_alone(figures, peer.name, standing, replace(load, connections=1))
        figures.add_ratio(
            f"gateway_to_{peer.name}", "gateway_rps_32", f"{peer.name}_rps_32", "so many times more"
        )
    _keep(figures, "gateway_again", standing, ours)


def _keep(figures: Figures, name: str, standing: Stage, load: Load) -> None:
    _tell(name)
    measured = standing.use(load).measured
    figures.add(f"{name}_rps_32", measured.ok_per_s, "/s", f"{name}, {_CLIENTS} clients")
    figures.add(f"{name}_not_ok", measured.not_ok, "", measured.not_ok_in_words)
    if measured.ok_us:
        figures.add(f"{name}_p50_ms_32", latencies(measured.ok_us).p50_ms, "ms", "p50 of it")


def _keep_alone(figures: Figures, name: str, standing: Stage, load: Load) -> None:
    found = latencies(standing.use(load).measured.ok_us)
    figures.add(f"{name}_p50_ms_1", found.p50_ms, "ms", f"p50 of {name}, one client")


def _load(port: int, headers: dict[str, str]) -> Load:
    body = chat()
    told = {
        "host": "bench",
        "content-type": "application/json",
        "accept": "*/*",
        "content-length": str(len(body)),
        **headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return Load(
        ports=(port,),
        head=f"POST /v1/chat/completions HTTP/1.1\r\n{lines}\r\n".encode(),
        keys=(b"",),
        tail=body,
        connections=_CLIENTS,
        duration_s=_DURATION_S,
        warm_up_s=_WARM_UP_S,
    )


@contextlib.contextmanager
def _running(peer: Peer, around: Surroundings) -> Iterator[int]:
    """Run a peer on a free port until the block ends; what it says goes to a file beside it."""
    with socket.socket() as free:
        free.bind((_HOST, 0))
        port = free.getsockname()[1]
    with (_FOLDER / f"{peer.name}.out").open("wb") as said:
        process = subprocess.Popen(  # noqa: S603 # the peers' programs and ours, with our arguments
            peer.command(port, around), stdout=said, stderr=said
        )
        try:
            _wait_for(peer, port, around)
            yield port
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait_for(peer: Peer, port: int, around: Surroundings) -> None:
    """Return when it has answered once.

    Raises:
        TimeoutError: it didn't in time.

    """
    ends_s = time.monotonic() + _START_S
    headers = {**peer.headers(around), "content-type": "application/json"}
    told = "nothing"
    while time.monotonic() < ends_s:
        try:
            answer = httpx.post(
                f"http://{_HOST}:{port}/v1/chat/completions",
                content=chat(),
                headers=headers,
                timeout=10,
            )
        except httpx.HTTPError as error:
            told = type(error).__name__
        else:
            if answer.status_code == httpx.codes.OK:
                return
            told = f"{answer.status_code} {answer.text[:200]}"
        time.sleep(0.5)
    raise TimeoutError(f"{peer.name} doesn't answer: {told}")


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> int:
    """Return 0: it was measured; 2: a peer isn't installed."""
    for program in (_FOLDER / "litellm" / "bin" / "litellm", _FOLDER / "portkey" / _PORTKEY_MODULE):
        if not program.exists() or shutil.which("node") is None:
            sys.stderr.write(f"not installed: {program.name}, see `make bench-peers`\n")
            return 2
    figures = Figures()
    with stage(_tell) as standing:
        measure(standing, figures)
    figures.write(_OUT, {"form": "peers", "load_average_before": os.getloadavg()[0]})
    sys.stdout.write(f"{figures.table()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
