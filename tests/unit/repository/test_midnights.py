"""Tests of days wait over a midnight that is near; every one that counts by the day does."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from midnights import ROOM_S, ZONES, wait_s

TESTS = Path(__file__).parents[2]
BY_DAY = re.compile(
    r"days_around\(|months_around\(|daily_requests|daily_tokens|\"period\": \"day\""
)
# Written and told, but nothing is counted; a machine that looks at the clock with each step.
WITHOUT = {
    "integration/control_plane/test_keys.py",
    "integration/control_plane/test_tiers.py",
    "integration/redis_scripts/random_tiers.py",
    "integration/redis_scripts/test_whole_agreement.py",
}


def unix_us(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)


@pytest.mark.parametrize(
    ("now", "expected_s"),
    [
        pytest.param("2026-11-30T12:00:00", 0, id="noon"),
        pytest.param("2026-11-30T23:59:09.999", 0, id="room enough"),
        pytest.param("2026-11-30T23:59:30", 31, id="too near"),
        pytest.param("2026-12-01T00:00:00", 0, id="midnight itself"),
        pytest.param("2026-11-30T22:59:59", 2, id="Berlin's in winter"),
        pytest.param("2026-07-30T21:59:59", 2, id="Berlin's in summer"),
        pytest.param("2026-11-30T18:14:50", 11, id="Kathmandu's"),
    ],
)
def test_a_midnight_is_waited_over(now: str, expected_s: float) -> None:
    assert wait_s(unix_us(now)) == pytest.approx(expected_s)
    assert wait_s(unix_us(now), ()) == 0
    assert expected_s <= ROOM_S + 1


def test_every_module_that_counts_by_the_day_keeps_clear_of_midnight() -> None:
    files = [*TESTS.glob("integration/**/*.py"), *TESTS.glob("e2e/*.py")]
    by_day = {file for file in files if BY_DAY.search(file.read_text(encoding="utf-8"))}
    names = {str(file.relative_to(TESTS)) for file in by_day}
    assert names > WITHOUT
    for file in by_day:
        if str(file.relative_to(TESTS)) not in WITHOUT:
            assert 'usefixtures("far_from_midnight")' in file.read_text(encoding="utf-8"), file


def test_every_zone_in_which_tests_count_is_known() -> None:
    zone = re.compile(r"time_zone\"?[=:] ?\"(\w+/\w+)\"|BERLIN = \"([\w/]+)\"")
    found = {
        next(filter(None, groups))
        for folder in ("integration", "e2e")
        for file in (TESTS / folder).rglob("*.py")
        for groups in zone.findall(file.read_text(encoding="utf-8"))
    }
    assert found - {"Europe/Nowhere", "Mars/Base"} <= set(ZONES)
    assert "Europe/Berlin" in found
