"""Answers in the shapes that providers send, and what they come to: fixtures/<adapter>/."""

import itertools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.usage import Usage
from edge_proxy.domain.adapters import ADAPTERS
from edge_proxy.domain.adapters.adapter import Api, Traits
from edge_proxy.domain.adapters.answer import Outgoing
from edge_proxy.domain.adapters.scanner import StreamScanner

FIXTURES = Path(__file__).parent / "fixtures"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One answer, and what it must come to."""

    adapter: str
    name: str
    file: str
    endpoint: str
    usage: Usage | None
    usd: str | None
    verdict: str
    ends: str
    traits: Traits

    @property
    def id(self) -> str:
        return f"{self.adapter}: {self.name}"

    @property
    def is_stream(self) -> bool:
        return self.file.endswith(".sse")

    @property
    def body(self) -> bytes:
        return (FIXTURES / self.adapter / self.file).read_bytes()

    @property
    def api(self) -> Api:
        return ADAPTERS[self.adapter](self.traits).apis[self.endpoint]

    def scanner(self, *, hides_usage: bool, max_event_bytes: int = 1_000_000) -> StreamScanner:
        return self.api.scanner(Outgoing(b"", hides_usage), max_event_bytes)


def _recorded(adapter: str, case: dict[str, Any]) -> Recorded:
    usage = case.pop("usage", None)
    defaults = {"verdict": "found", "usd": None, "ends": "complete"}
    traits = Traits(**case.pop("traits", {}))
    return Recorded(
        adapter=adapter,
        usage=None if usage is None else Usage(**usage),
        traits=traits,
        **(defaults | case),
    )


def recorded() -> list[Recorded]:
    """Return every case of every adapter."""
    return [
        _recorded(page.parent.name, case)
        for page in sorted(FIXTURES.glob("*/cases.toml"))
        for case in tomllib.loads(page.read_text(encoding="utf-8"))["case"]
    ]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Return data in pieces, cut at places that are taken modulo its length."""
    bounds = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(bounds)]


def scan(scanner: StreamScanner, chunks: list[bytes]) -> bytes:
    """Return all that passes while a stream is read to its end."""
    return b"".join([*(scanner.feed(chunk) for chunk in chunks), scanner.end()])
