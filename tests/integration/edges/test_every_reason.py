"""Load that meets every limit there is: the counters of edge and admission say what clients saw.

All limits of teams are met at the same time, by clients of one address behind a trusted proxy; what
is limited by address, from loopback addresses of its own; at last the edge is filled.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration.edge_proxy.world import CHAT, MODEL, EdgeProcess, Team, asked
from integration.edges.floor import Floor
from integration.services import ServiceProcess

from contracts.admission import LimitReason
from edge_proxy.domain.reasons import REASONS, EdgeReason
from kit.ids import new_id
from kit.keys import new_key
from quotagate.stack import Servers

pytestmark = pytest.mark.usefixtures("far_from_midnight")

POLICIES = """
[policies.Vectors]
endpoints = ["POST /v1/embeddings"]
windows = [{ label = "Hour", limit = 5, seconds = 3600 }]

[policies.Lists]
endpoints = ["GET /v1/models"]
windows = [{ label = "Minute", limit = 1000, seconds = 60 }]
address_windows = [{ label = "Hour", limit = 2, seconds = 3600 }]
"""
SETTINGS = {
    "QUOTAGATE_TRUSTED_PROXIES": "127.0.0.1/32",
    "QUOTAGATE_MAX_IN_FLIGHT": "100",
    "QUOTAGATE_MAX_CONNECTIONS_PER_ADDRESS": "5",
    "QUOTAGATE_MAX_AUTH_FAILURES_PER_ADDRESS": "4",
}
HURRIED = {"QUOTAGATE_MAX_NEW_CONNECTIONS_PER_ADDRESS": "1"}
# From where what is limited by address comes: one address each.
GUESSING, CONNECTING = "127.0.0.2", "127.0.0.3"
ASKED = 20
SLOW = {"rpm": 1}
IN, OUT = {"prompt_tokens": 600}, {"completion_tokens": 600}


def spending(period: str, scope: str) -> dict[str, Any]:
    return {"spend_limits": [{"period": period, "scope": scope, "limit_usd": "0"}]}


# What each tier has, what its first call uses (None: there is none), and how a refusal is told.
TIERS: dict[LimitReason, tuple[dict[str, Any], dict[str, Any] | None, int, str]] = {
    LimitReason.REQUESTS: ({"rpm": 1}, {}, 429, "rate_limit_exceeded"),
    LimitReason.TOKENS: ({"tpm": 60}, IN, 429, "rate_limit_exceeded"),
    LimitReason.INPUT_TOKENS: ({"input_tpm": 60}, IN, 429, "rate_limit_exceeded"),
    LimitReason.OUTPUT_TOKENS: ({"output_tpm": 60}, OUT, 429, "rate_limit_exceeded"),
    LimitReason.KEY_REQUESTS: ({"key_rates": SLOW}, {}, 429, "rate_limit_exceeded"),
    LimitReason.KEY_TOKENS: ({"key_rates": {"tpm": 60}}, IN, 429, "rate_limit_exceeded"),
    LimitReason.MODEL_REQUESTS: ({"model_rates": {MODEL: SLOW}}, {}, 429, "rate_limit_exceeded"),
    LimitReason.MODEL_TOKENS: (
        {"model_rates": {MODEL: {"tpm": 60}}},
        IN,
        429,
        "rate_limit_exceeded",
    ),
    LimitReason.CONCURRENCY: ({"max_concurrency": 0}, None, 429, "concurrent_limit"),
    LimitReason.DAY_REQUESTS: ({"daily_requests": 1}, {}, 429, "daily_request_limit"),
    LimitReason.DAY_TOKENS: (
        {"daily_tokens": 5_000},
        {"prompt_tokens": 5_000},
        429,
        "daily_token_limit",
    ),
    LimitReason.DAY_SPEND: (spending("day", "team"), None, 402, "spend_limit_reached"),
    LimitReason.MONTH_SPEND: (spending("month", "team"), None, 402, "spend_limit_reached"),
    LimitReason.KEY_DAY_SPEND: (spending("day", "key"), None, 402, "spend_limit_reached"),
    LimitReason.KEY_MONTH_SPEND: (spending("month", "key"), None, 402, "spend_limit_reached"),
}


@dataclass
class Tally:
    """What clients saw."""

    reasons: Counter[str] = field(default_factory=Counter)

    def note(self, answer: httpx.Response) -> httpx.Response:
        """Count an answer's reason, which its details must repeat."""
        reason = answer.headers.get("x-ratelimit-reason")
        if reason is not None:
            self.reasons[reason] += 1
            details = answer.json()["error"]["details"]
            assert details["reason"] == reason
            assert details["scope"] in {"team", "key", "model", "address", "edge"}
            assert answer.status_code == 402 or "retry-after" in answer.headers
        return answer


@pytest.fixture
async def guarded(servers: Servers, floor: Floor, tmp_path: Path) -> AsyncIterator[EdgeProcess]:
    """An edge of this test with everything limited but how fast connections are opened."""
    policies = tmp_path / "policies.toml"
    policies.write_text(POLICIES, encoding="utf-8")
    settings = {**SETTINGS, "QUOTAGATE_POLICIES_FILE": str(policies)}
    async with running_edge(servers, floor, tmp_path, settings) as edge:
        yield edge


@pytest.fixture
async def hurried(
    servers: Servers, floor: Floor, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[EdgeProcess]:
    """An edge that takes one new connection a second."""
    folder = tmp_path_factory.mktemp("hurried")
    async with running_edge(servers, floor, folder, HURRIED) as edge:
        yield edge


@contextlib.asynccontextmanager
async def running_edge(
    servers: Servers, floor: Floor, folder: Path, settings: dict[str, str]
) -> AsyncIterator[EdgeProcess]:
    addresses = {"fake": floor.provider.base_url, "raw": "http://127.0.0.1:1"}
    edge = EdgeProcess(servers, folder, addresses, settings)
    try:
        await edge.start_ready()
        yield edge
    finally:
        await edge.stop()


@contextlib.asynccontextmanager
async def client_at(
    edge: EdgeProcess, address: str = "127.0.0.1"
) -> AsyncIterator[httpx.AsyncClient]:
    """A client with one connection, from this address."""
    transport = httpx.AsyncHTTPTransport(
        local_address=address, limits=httpx.Limits(max_connections=None)
    )
    async with httpx.AsyncClient(transport=transport, base_url=edge.url, timeout=60) as client:
        yield client


async def test_every_reason_appears_and_every_counter_equals_what_clients_saw(
    floor: Floor, guarded: EdgeProcess, hurried: EdgeProcess
) -> None:
    before = await decided(floor.admission)
    tally = Tally()
    async with client_at(guarded) as http:
        await asyncio.gather(
            *(meet(floor, http, tally, reason) for reason in TIERS),
            meet_no_money(floor, http, tally),
            meet_windows(floor, http, tally),
            meet_strangers_windows(http, tally),
        )
        by_admission = Counter(tally.reasons)
        await guess(guarded, tally)
        await connect(guarded, tally, await new_team(floor))
        await fill(floor, http, tally)

    by_guarded = Counter(tally.reasons)
    await hurry(hurried, tally, await new_team(floor))

    assert set(tally.reasons) == REASONS
    assert min(tally.reasons.values()) >= 2
    assert await told(guarded) == by_guarded
    assert await told(hurried) == tally.reasons - by_guarded
    assert await decided(floor.admission) - before == by_admission


async def meet(floor: Floor, http: httpx.AsyncClient, tally: Tally, reason: LimitReason) -> None:
    """Use a limit up, and be refused by it."""
    limits, used, status, code = TIERS[reason]
    team, _ = await floor.open_team(**limits)
    if used is not None:
        first = await http.post(CHAT, headers=team.headers, json=asked(team, **used))
        assert first.status_code == 200, first.text
    answers = await many(lambda: http.post(CHAT, headers=team.headers, json=asked(team)), tally)
    assert {answer.status_code for answer in answers} == {status}
    assert {answer.headers["x-ratelimit-reason"] for answer in answers} == {reason}
    assert {answer.json()["error"]["code"] for answer in answers} == {code}


async def meet_no_money(floor: Floor, http: httpx.AsyncClient, tally: Tally) -> None:
    team = await new_team(floor, balance_usd="-1")
    answers = await many(lambda: http.post(CHAT, headers=team.headers, json=asked(team)), tally)
    assert {answer.status_code for answer in answers} == {402}


async def meet_windows(floor: Floor, http: httpx.AsyncClient, tally: Tally) -> None:
    """Five are let in, whoever comes first."""
    team = await new_team(floor)
    body = {"model": MODEL, "input": "hello", "metadata": asked(team)["metadata"]}
    answers = await many(
        lambda: http.post("/v1/embeddings", headers=team.headers, json=body), tally
    )
    assert Counter(answer.status_code for answer in answers) == {200: 5, 429: ASKED - 5}


async def meet_strangers_windows(http: httpx.AsyncClient, tally: Tally) -> None:
    """Two are told that they have no key, the others that they come too often."""
    headers = {"x-forwarded-for": "203.0.113.1"}
    answers = [tally.note(await http.get("/v1/models", headers=headers)) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [401, 401, 429, 429]


async def guess(edge: EdgeProcess, tally: Tally) -> None:
    """Four guesses a minute are looked up."""
    async with client_at(edge, GUESSING) as http:
        for number in range(ASKED):
            headers = {"authorization": f"Bearer {new_key('another pepper').text}"}
            answer = tally.note(await http.post(CHAT, headers=headers, json={}))
            assert answer.status_code == (401 if number < 4 else 429)


async def connect(edge: EdgeProcess, tally: Tally, team: Team) -> None:
    """Five connections may be open; as many more are answered once."""
    async with contextlib.AsyncExitStack() as stack:
        for number in range(8):
            http = await stack.enter_async_context(client_at(edge, CONNECTING))
            answer = tally.note(await http.get("/v1/models", headers=team.headers))
            assert answer.status_code == (200 if number < 5 else 429)


async def hurry(edge: EdgeProcess, tally: Tally, team: Team) -> None:
    """Come four at a time where one a second may come, until two were told."""

    async def come() -> None:
        async with client_at(edge) as http:
            tally.note(await http.get("/v1/models", headers=team.headers))

    while tally.reasons[EdgeReason.CONNECTION_RATE] < 2:
        await asyncio.gather(*(come() for _ in range(4)))


async def fill(floor: Floor, http: httpx.AsyncClient, tally: Tally) -> None:
    """Hold as many calls as the edge takes, and ask for more."""
    team, gate = await new_team(floor), new_id()
    held = [
        asyncio.create_task(http.post(CHAT, headers=team.headers, json=asked(team, gate=gate)))
        for _ in range(int(SETTINGS["QUOTAGATE_MAX_IN_FLIGHT"]))
    ]
    await floor.witness.requests(len(held), marker=team.team_id)
    answers = await many(lambda: http.post(CHAT, headers=team.headers, json=asked(team)), tally)
    assert {answer.status_code for answer in answers} == {503}
    await floor.witness.open_gate(gate)
    assert {(await call).status_code for call in held} == {200}


async def new_team(floor: Floor, balance_usd: str = "5") -> Team:
    """Open a team that no limit of its tier refuses."""
    team, _ = await floor.open_team(balance_usd=balance_usd)
    return team


async def many(ask: Callable[[], Awaitable[httpx.Response]], tally: Tally) -> list[httpx.Response]:
    """Ask twenty times, four at a time: the edge isn't to be filled yet."""
    answers = []
    for _ in range(ASKED // 4):
        answers += await asyncio.gather(*(ask() for _ in range(4)))
    return [tally.note(answer) for answer in answers]


async def told(edge: EdgeProcess) -> Counter[str]:
    """Return what the edge says it told, by reason."""
    counts = await samples(edge.url, "quotagate_limited_total")
    return Counter({reason: count for reason, count in counts.items() if count})


async def decided(admission: ServiceProcess) -> Counter[str]:
    """Return what admission says it refused, by reason."""
    counted: Counter[str] = Counter()
    url = admission.url
    for labels, count in (await samples(url, "quotagate_admission_decisions_total")).items():
        decision, _, reason = labels.partition(" ")
        if decision in {"rate_limited", "spend_limited"}:
            counted[reason] += count
        if decision == "balance_negative":
            counted[EdgeReason.BALANCE] += count
    windows = await samples(url, "quotagate_admission_window_decisions_total")
    counted[LimitReason.ENDPOINT] += windows.get("limited", 0)
    return counted


async def samples(url: str, metric: str) -> dict[str, int]:
    """Return a metric's samples by the values of its labels."""
    async with httpx.AsyncClient() as http:
        text = (await http.get(f"{url}/metrics")).text
    found = {}
    for line in text.splitlines():
        if line.startswith(f"{metric}{{"):
            labels, _, value = line.rpartition(" ")
            found[" ".join(labels.split('"')[1::2])] = int(float(value))
    return found
