"""The points that the suite strikes are those that stand in the code."""

import re
from pathlib import Path

from faults.strikes.fault import CRASH_POINTS

_SERVICES = Path(__file__).parents[4] / "services"
_POINT = re.compile(r'\bcrash_at\(\s*"([^"]+)"')


def test_every_crash_point_of_the_code_is_struck_and_no_other() -> None:
    found = [
        point
        for path in sorted(_SERVICES.glob("*/src/**/*.py"))
        for point in _POINT.findall(path.read_text(encoding="utf-8"))
    ]
    assert sorted(found) == sorted(CRASH_POINTS)
