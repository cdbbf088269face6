"""Webhooks: signed so that the official library takes them, repeated ever more seldom, given up."""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from control_plane.domain.webhooks import (
    Answer,
    Fate,
    Owed,
    SecretFormatError,
    body_of,
    fate,
    headers_of,
    pause_s,
    read_secrets,
)

OLD, NEW = (f"whsec_{base64.b64encode(bytes([n]) * 32).decode()}" for n in (1, 2))
OWED = Owed(
    "spend-1",
    "spend.threshold",
    b'{"team_id":"t","spent_usd":"0.0000001"}',
    datetime(2026, 12, 1, 8, 30, tzinfo=UTC),
    1,
)


def now_s() -> int:
    # The official library compares with the real clock.
    return int(datetime.now(UTC).timestamp())


def test_the_body_is_the_event_with_its_type_and_instant() -> None:
    assert json.loads(body_of(OWED)) == {
        "type": "spend.threshold",
        "timestamp": "2026-12-01T08:30:00.000000Z",
        "data": {"team_id": "t", "spent_usd": "0.0000001"},
    }


@pytest.mark.parametrize("receivers", [OLD, NEW], ids=["not yet exchanged", "exchanged"])
def test_the_official_library_takes_what_was_signed_with_either_secret(receivers: str) -> None:
    body = body_of(OWED)
    headers = headers_of("spend-1", body, now_s(), read_secrets(f"{OLD} {NEW}"))
    assert Webhook(receivers).verify(body, dict(headers)) == json.loads(body)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("webhook-id", "spend-2", id="another id"),
        pytest.param("webhook-timestamp", "1", id="another time"),
    ],
)
def test_what_was_altered_is_refused(name: str, value: str) -> None:
    body = body_of(OWED)
    headers = dict(headers_of("spend-1", body, now_s(), read_secrets(NEW)))
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(body, {**headers, name: value})
    with pytest.raises(WebhookVerificationError):
        Webhook(NEW).verify(body + b" ", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(body, headers)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(base64.b64encode(bytes(32)).decode(), id="no mark"),
        pytest.param("whsec_", id="empty"),
        pytest.param("whsec_" + base64.b64encode(bytes(23)).decode(), id="too short"),
        pytest.param("whsec_äöü", id="no base64"),
        pytest.param(f"{NEW} whsec_!", id="the second of two"),
    ],
)
def test_a_secret_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(SecretFormatError):
        read_secrets(text)


PATIENCE = timedelta(hours=72)


@pytest.mark.parametrize(
    ("answer", "age_h", "expected"),
    [
        pytest.param(Answer(200), 0, Fate.DELIVERED, id="taken"),
        pytest.param(Answer(204), 100, Fate.DELIVERED, id="taken late"),
        pytest.param(Answer(302), 0, Fate.RETRY, id="a redirect is not followed"),
        pytest.param(Answer(400), 0, Fate.RETRY, id="refused"),
        pytest.param(Answer(503), 71, Fate.RETRY, id="failing"),
        pytest.param(Answer(error="timeout"), 71, Fate.RETRY, id="silent"),
        pytest.param(Answer(error="timeout"), 72, Fate.GIVEN_UP, id="silent for too long"),
        pytest.param(Answer(410), 0, Fate.GIVEN_UP, id="gone"),
    ],
)
def test_what_an_answer_means(answer: Answer, age_h: int, expected: Fate) -> None:
    assert fate(answer, timedelta(hours=age_h), PATIENCE) is expected


def test_pauses_grow_up_to_six_hours_and_are_jittered_by_a_quarter() -> None:
    assert [pause_s(n, 0) for n in (1, 2, 3, 8, 9, 1_000)] == [5, 15, 45, 10_935, 21_600, 21_600]
    assert pause_s(1, 1) == 6.25
