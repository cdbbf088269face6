import msgspec
import pytest

from contracts import control, inference
from contracts.catalogue import EVENTS, REQUESTS, STREAMS
from contracts.contract import Event, Message, SubjectTokenError, decode, encode
from contracts.usage import Usage


def test_every_subject_is_listed_once() -> None:
    subjects = [r.subject for r in REQUESTS] + [e.subject for e in EVENTS]
    assert len(subjects) == len(set(subjects))
    assert all(subject.startswith("quota.v1.") for subject in subjects)


def test_every_event_has_its_stream() -> None:
    streams = {stream.name for stream in STREAMS}
    assert {event.stream for event in EVENTS} <= streams


def _covers(pattern: str, subject: str) -> bool:
    wanted, have = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        return have[: len(wanted) - 1] == wanted[:-1] and len(have) >= len(wanted)
    return len(wanted) == len(have) and all(
        w in {"*", h} for w, h in zip(wanted, have, strict=True)
    )


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.subject)
def test_each_event_is_captured_by_exactly_its_stream(event: Event[Message]) -> None:
    subject = event.subject_for("t-1" if event.parameter else None)
    capturing = [s.name for s in STREAMS if any(_covers(p, subject) for p in s.subjects)]
    assert capturing == [event.stream]


@pytest.mark.parametrize("token", ["", "a.b", "*", ">", "a b", "a\r\nPUB x"])
def test_a_token_cannot_change_the_subject(token: str) -> None:
    with pytest.raises(SubjectTokenError):
        inference.INFERENCE_RECORDED.subject_for(token)


@pytest.mark.parametrize("team_id", ["", "a{b}", "a.b", "x" * 65, "ü", "a\n"])
def test_a_message_with_a_bad_team_id_is_refused(team_id: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(
            msgspec.json.encode(
                {"team_id": team_id, "tier_id": "t", "version": 1, "changed_at_us": 1}
            ),
            control.TierChanged,
        )


def test_unknown_fields_are_ignored() -> None:
    message = decode(
        b'{"team_id":"t","tier_id":"a","version":3,"changed_at_us":5,"new":{"x":1}}',
        control.TierChanged,
    )
    assert message.version == 3


def test_messages_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Usage(input=1).input = 2  # type: ignore[misc] # that is the point


def test_usage_counts_each_class_once() -> None:
    usage = Usage(
        input=1, cache_read=2, cache_write_5m=4, cache_write_1h=8, output=16, reasoning=32
    )
    assert usage.total == 63
    assert decode(encode(usage), Usage) == usage


def test_negative_usage_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(b'{"input":-1}', Usage)


@pytest.mark.parametrize(
    "message",
    [m for r in REQUESTS for m in (r.request, r.reply)] + [e.message for e in EVENTS],
    ids=lambda m: m.__name__,
)
def test_every_message_is_frozen_and_tolerant(message: type[msgspec.Struct]) -> None:
    config = message.__struct_config__
    assert config.frozen
    assert not config.forbid_unknown_fields
    assert message.__doc__
