"""A record's trace hears of its row and of its charge, once each, and only while that is known."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts.inference import InferenceRecord, Outcome, UsageSource
from kit.traces.tracer import Attributes, Kind, Past, Span
from settlement.domain.classification import Class, Held, HeldReason, Pending, Unbillable
from settlement.domain.settling import AccountBatch, UsageCharge
from settlement.handlers import traced
from settlement.handlers.traced import RecordTraces
from settlement.store.records import Arrival

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ARRIVED_S = 1_700_000_000
STORED_US, SETTLED_US = ARRIVED_S * 10**6 + 5, ARRIVED_S * 10**6 + 70


class Told:
    """A tracer that remembers."""

    def __init__(self) -> None:
        self.spans: list[tuple[Past, str | None]] = []

    def current(self) -> str | None:
        return None

    def begin(
        self, name: str, kind: Kind, parent: str | None, attributes: Attributes
    ) -> AbstractContextManager[Span | None]:
        raise NotImplementedError

    def child(
        self, name: str, kind: Kind, attributes: Attributes
    ) -> AbstractContextManager[Span | None]:
        raise NotImplementedError

    def tell(self, past: Past, parent: str | None = None) -> None:
        self.spans.append((past, parent))

    async def close(self) -> None:
        raise NotImplementedError


class Clock:
    """Shows what it is told to."""

    def __init__(self) -> None:
        self.us = STORED_US

    def now_us(self) -> int:
        return self.us

    def monotonic_us(self) -> int:
        raise NotImplementedError


class World:
    """Records with numbers that come and are charged."""

    def __init__(self) -> None:
        self.told = Told()
        self.clock = Clock()
        self.traces = RecordTraces(self.told, self.clock)

    def store(
        self, number: int, outcome: Class, headers: Mapping[str, str], *, times: int = 1
    ) -> None:
        arrival = _arrival(number, outcome)
        taken = [(_message(headers), arrival)] * times
        self.traces.stored(taken, {arrival.key: number})

    def settle(self, *numbers: int, held: Mapping[int, HeldReason] | None = None) -> None:
        self.clock.us = SETTLED_US
        charges = tuple(UsageCharge(number, "price", Decimal(1)) for number in numbers)
        self.traces.settled([AccountBatch("team", charges, Decimal(1), held or {})])

    @property
    def names(self) -> list[str]:
        return [span.name for span, _ in self.told.spans]


def _arrival(number: int, outcome: Class) -> Arrival:
    record = InferenceRecord(
        inference_id=f"inference-{number}",
        attempt_no=1,
        team_id="team",
        api_key_id="key",
        provider="fake",
        model_asked="model",
        outcome=Outcome.SUCCEEDED,
        usage_source=UsageSource.PROVIDER,
        started_at_us=1,
    )
    return Arrival(record, number, outcome)


def _message(headers: Mapping[str, str]) -> Msg:
    reply = f"$JS.ACK.STREAM.CONSUMER.1.7.7.{ARRIVED_S}000000000.0"
    return Msg(_client=Client(), reply=reply, headers=dict(headers))


@pytest.fixture
def world() -> World:
    return World()


def test_a_record_is_told_of_twice(world: World) -> None:
    world.store(7, Pending(), {"traceparent": PARENT, "Nats-Msg-Id": "inference-7:1"})
    world.settle(7)
    (stored, _), (settled, _) = world.told.spans
    assert [parent for _, parent in world.told.spans] == [PARENT, PARENT]
    assert (stored.name, stored.started_us, stored.ended_us) == (
        "store record",
        ARRIVED_S * 10**6,
        STORED_US,
    )
    assert (settled.name, settled.started_us, settled.ended_us) == (
        "settle record",
        STORED_US,
        SETTLED_US,
    )
    about = {
        "quotagate.team_id": "team",
        "quotagate.inference_id": "inference-7",
        "quotagate.attempt_no": 1,
    }
    assert stored.attributes == {**about, "quotagate.state": "pending"}
    assert settled.attributes == {**about, "quotagate.state": "settled"}
    assert (stored.error_type, settled.error_type) == (None, None)


def test_a_record_without_a_trace_is_not_told_of(world: World) -> None:
    world.store(7, Pending(), {"Nats-Msg-Id": "inference-7:1"})
    world.settle(7)
    assert world.names == []


def test_a_record_that_was_stored_before_is_not_told_of_again(world: World) -> None:
    world.traces.stored([(_message({"traceparent": PARENT}), _arrival(7, Pending()))], {})
    assert world.names == []


def test_what_is_twice_in_a_batch_is_told_of_once(world: World) -> None:
    world.store(7, Pending(), {"traceparent": PARENT}, times=2)
    world.settle(7)
    assert world.names == ["store record", "settle record"]


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        pytest.param(Unbillable(), "unbillable", id="no usage"),
        pytest.param(Held(HeldReason.ABSURD_USAGE), "held", id="held at once"),
    ],
)
def test_what_is_never_charged_ends_with_its_row(world: World, outcome: Class, state: str) -> None:
    world.store(7, outcome, {"traceparent": PARENT})
    world.settle(7)
    ((stored, _),) = world.told.spans
    assert stored.attributes["quotagate.state"] == state


def test_what_is_held_instead_of_charged_says_why(world: World) -> None:
    world.store(7, Pending(), {"traceparent": PARENT})
    world.settle(held={7: HeldReason.MISSING_PRICE})
    settled, _ = world.told.spans[-1]
    assert settled.attributes["quotagate.state"] == "held"
    assert settled.error_type == "missing_price"


def test_the_oldest_are_forgotten_when_too_many_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traced, "_MOST_PENDING", 2)
    for number in (1, 2, 3):
        world.store(number, Pending(), {"traceparent": PARENT})
    world.settle(1, 2, 3)
    told: list[Any] = [
        span.attributes["quotagate.inference_id"]
        for span, _ in world.told.spans
        if span.name == "settle record"
    ]
    assert told == ["inference-2", "inference-3"]
