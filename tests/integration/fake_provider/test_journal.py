"""The witness: what it tells of requests, and what survives of it."""

import asyncio
import hashlib
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration.fake_provider.process import API_KEY, FakeProcess
from integration.fake_provider.witness import Witness

from fake_provider.behaviour import fake

_CHAT = "/v1/chat/completions"
_HEADERS = {"authorization": f"Bearer {API_KEY}"}


def _asked(marker: str, **knobs: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "messages": [{"role": "user", "content": "two words"}],
        "metadata": fake(marker=marker, **knobs),
    }


async def test_what_is_seen_of_a_request(http: httpx.AsyncClient, witness: Witness) -> None:
    body = json.dumps({**_asked("seen"), "stream": True, "stream_options": {"include_usage": True}})
    headers = {b"traceparent": b"00-1-2-01", b"X-Odd": b"\xe9"}
    answer = await http.post(_CHAT, content=body, headers=headers)

    seen = await witness.one(marker="seen", outcome="completed")
    assert seen["request_id"] == answer.headers["x-request-id"]
    assert (seen["method"], seen["path"]) == ("POST", _CHAT)
    assert seen["body_sha256"] == hashlib.sha256(body.encode()).hexdigest()
    assert seen["body_bytes"] == len(body)
    assert (seen["stream"], seen["include_usage"]) == (True, True)
    assert (seen["status"], seen["chunks_sent"]) == (200, 5)
    assert seen["usage"] == {"prompt_tokens": 2, "completion_tokens": 5}
    assert ["traceparent", "00-1-2-01"] in seen["headers"]
    assert ["x-odd", "é"] in seen["headers"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        pytest.param(b"{", {}, 400, id="broken JSON"),
        pytest.param(b"{}", {"authorization": "Bearer wrong"}, 401, id="wrong key"),
    ],
)
async def test_refused_requests_are_seen_too(
    http: httpx.AsyncClient,
    witness: Witness,
    body: bytes,
    headers: dict[str, str],
    status: int,
) -> None:
    before = await witness.counts(outcome="completed")
    answer = await http.post(_CHAT, content=body, headers=headers)
    after = await witness.counts(before["requests"] + 1, outcome="completed")

    assert answer.status_code == status
    key = str(status)
    assert after["by_status"][key] == before["by_status"].get(key, 0) + 1


async def test_half_a_request_is_seen_too(provider: FakeProcess, witness: Witness) -> None:
    host, port = provider.base_url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: f\r\ncontent-length: 100\r\n\r\n{")
    writer.close()

    seen = await witness.one(path="/v1/completions", outcome="client_gone", marker="")
    assert seen["status"] == 0


async def test_counts_add_up(http: httpx.AsyncClient, witness: Witness) -> None:
    for knobs in ({"prompt_tokens": 10, "cached_tokens": 4}, {"status": 500}, {"prompt_tokens": 1}):
        await http.post(_CHAT, json=_asked("adds up", **knobs))

    counts = await witness.counts(marker="adds up", outcome="completed", at_least=3)
    assert counts["requests"] == 3
    assert counts["by_status"] == {"200": 2, "500": 1}
    assert counts["with_usage"] == 2
    tokens = counts["tokens"]
    assert (tokens["prompt_tokens"], tokens["cached_tokens"]) == (11, 4)


async def test_a_marker_is_not_found_by_a_part_of_it(
    http: httpx.AsyncClient, witness: Witness
) -> None:
    await http.post(_CHAT, json=_asked("whole marker"))

    assert await witness.requests(marker="whole") == []


async def test_wrong_question(http: httpx.AsyncClient) -> None:
    answer = await http.get("/_fake/counts", params={"markr": "x"})

    assert answer.status_code == 400
    assert "markr" in answer.text


async def test_waiting_in_vain_says_so(http: httpx.AsyncClient) -> None:
    answer = await http.get(
        "/_fake/requests", params={"marker": "never sent", "at_least": 1, "wait_ms": 10}
    )

    assert answer.status_code == 504


@pytest.fixture
async def lasting(tmp_path: Path) -> AsyncIterator[FakeProcess]:
    process = FakeProcess(
        tmp_path,
        QUOTAGATE_FAKE_JOURNAL=str(tmp_path / "journal.jsonl"),
        QUOTAGATE_FAKE_JOURNAL_ENTRIES="3",
    )
    await process.start()
    yield process
    await process.stop()


@pytest.fixture
async def lasting_witness(lasting: FakeProcess) -> AsyncIterator[Witness]:
    witness = Witness(lasting.base_url)
    yield witness
    await witness.close()


@pytest.fixture
async def lasting_http(lasting: FakeProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=lasting.base_url, headers=_HEADERS) as client:
        yield client


async def test_the_journal_survives_a_kill(
    lasting: FakeProcess, lasting_http: httpx.AsyncClient, lasting_witness: Witness
) -> None:
    await lasting_http.post(_CHAT, json=_asked("first"))
    call = asyncio.create_task(lasting_http.post(_CHAT, json=_asked("second", hang=True)))
    await lasting_witness.one(marker="second", outcome="in_flight")

    lasting.signal(signal.SIGKILL)
    await lasting.ended()
    with pytest.raises(httpx.TransportError):
        await call
    await lasting.start()
    await lasting_http.post(_CHAT, json=_asked("third"))

    seen = await lasting_witness.requests()
    assert [(one["seq"], one["marker"], one["outcome"]) for one in seen] == [
        (1, "first", "completed"),
        (2, "second", "cut"),
        (3, "third", "completed"),
    ]
    assert seen[0]["usage"] == {"prompt_tokens": 2, "completion_tokens": 5}
    assert ["authorization", f"Bearer {API_KEY}"] in seen[0]["headers"]
    assert len({one["request_id"] for one in seen}) == 3


async def test_the_ring_is_bounded(
    lasting_http: httpx.AsyncClient, lasting_witness: Witness
) -> None:
    for number in range(5):
        await lasting_http.post(_CHAT, json=_asked(f"number {number}"))

    seen = await lasting_witness.requests()
    assert [one["marker"] for one in seen] == ["number 2", "number 3", "number 4"]


async def test_forgetting(
    lasting: FakeProcess, lasting_http: httpx.AsyncClient, lasting_witness: Witness
) -> None:
    call = asyncio.create_task(lasting_http.post(_CHAT, json=_asked("waiting", gate="g")))
    await lasting_witness.one(marker="waiting")
    await lasting_witness.forget()

    assert (await call).status_code == 200
    assert await lasting_witness.requests() == []
    lasting.signal(signal.SIGKILL)
    await lasting.ended()
    await lasting.start()
    assert await lasting_witness.requests() == []


async def test_told_to_stop_it_finishes_what_is_in_flight(
    lasting: FakeProcess, lasting_http: httpx.AsyncClient, lasting_witness: Witness
) -> None:
    slow = asyncio.create_task(lasting_http.post(_CHAT, json=_asked("slow", latency_ms=300)))
    await lasting_witness.one(marker="slow", outcome="in_flight")
    lasting.signal(signal.SIGTERM)

    assert (await slow).status_code == 200
    await lasting.ended()
    await lasting.start()
    assert (await lasting_witness.one(marker="slow"))["outcome"] == "completed"
