"""Key names and lives."""

import random

import pytest
from redis.crc import key_slot

from redis_scripts.errors import InvalidTeamIdError
from redis_scripts.keys import (
    day_counter,
    key_tat,
    life_ms,
    model_tat,
    spend_counter,
    team_keys,
    team_of_fenced_key,
    version_of,
)


def test_names() -> None:
    assert team_keys("acme_1") == (
        "quota:{acme_1}:rate:request_tat",
        "quota:{acme_1}:rate:token_tat",
        "quota:{acme_1}:tier",
        "quota:{acme_1}:tier:version",
        "quota:{acme_1}:account-balance",
        "quota:{acme_1}:account-balance:version",
        "quota:{acme_1}:rate:input_tat",
        "quota:{acme_1}:rate:output_tat",
        "quota:{acme_1}:leases",
    )


def test_names_that_a_key_a_model_and_a_day_are_part_of() -> None:
    assert [
        place.of("acme_1")
        for place in (
            key_tat("k7", "request"),
            model_tat("gpt-4o:mini", "token"),
            day_counter(86_400_000_000, 172_800_000_000, "tokens"),
            spend_counter(86_400_000_000, 172_800_000_000, None),
            version_of(spend_counter(86_400_000_000, 172_800_000_000, "k7")),
        )
    ] == [
        "quota:{acme_1}:key:k7:request_tat",
        "quota:{acme_1}:model:gpt-4o:mini:token_tat",
        "quota:{acme_1}:day:86400-172800:tokens",
        "quota:{acme_1}:spend:86400-172800",
        "quota:{acme_1}:spend:86400-172800:key:k7:version",
    ]


def test_what_is_fenced_by_versions() -> None:
    keys = team_keys("acme_1")
    fenced = {keys.tier, keys.tier_version, keys.balance, keys.balance_version}
    names = [*keys, "quota:{acme_1}:key:k7:tier", "quota:{acme_1}:model:tier:token_tat"]
    assert {name for name in names if team_of_fenced_key(name.encode()) == "acme_1"} == fenced
    assert [name for name in names if team_of_fenced_key(name.encode()) is None] == [
        name for name in names if name not in fenced
    ]


def test_braces_of_a_model_leave_the_slot_alone() -> None:
    name = model_tat("a{b}", "token").of("acme_1")
    assert key_slot(name.encode()) == key_slot(team_keys("acme_1").tier.encode())


@pytest.mark.parametrize("team_id", ["a", "Z9_-", "x" * 64])
def test_all_keys_of_a_team_share_a_slot(team_id: str) -> None:
    assert len({key_slot(key.encode()) for key in team_keys(team_id)}) == 1


@pytest.mark.parametrize(
    "team_id",
    [
        pytest.param("", id="empty"),
        pytest.param("x" * 65, id="too long"),
        pytest.param("a}", id="a closing brace"),
        pytest.param("{b}", id="another team's hash tag"),
        pytest.param("a b", id="a space"),
        pytest.param("a\n", id="a trailing newline"),
        pytest.param("a.b", id="a dot"),
        pytest.param("é", id="a letter beyond ASCII"),
        pytest.param("٣", id="a digit beyond ASCII"),
    ],
)
def test_an_id_that_could_leave_its_slot_is_refused(team_id: str) -> None:
    with pytest.raises(InvalidTeamIdError, match="A-Z"):
        team_keys(team_id)


def test_jitter_reaches_both_ends_and_no_further() -> None:
    rng = random.Random(1)  # noqa: S311 - jitter is no secret
    lives = {life_ms(10, 3, rng) for _ in range(200)}
    assert lives == {10, 11, 12, 13}
