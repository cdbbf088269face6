"""Whether the cache knows what a restored database doesn't."""

import pytest

from quotagate.catch_up.caches import Cached, Stored, is_newer

STORED = Stored(tier_id="tier_1", tier_version=3, account_version=7)


@pytest.mark.parametrize(
    ("cached", "newer"),
    [
        pytest.param(Cached(None, None, None), False, id="nothing is cached"),
        pytest.param(Cached("tier_1", 3, 7), False, id="the same"),
        pytest.param(Cached("tier_1", 2, 6), False, id="older"),
        pytest.param(Cached("tier_1", 3, 8), True, id="a later balance"),
        pytest.param(Cached("tier_1", 4, 7), True, id="a later mapping"),
        pytest.param(Cached(None, 4, None), True, id="only the fence of a later mapping"),
        pytest.param(Cached(None, None, 8), True, id="only the fence of a later balance"),
        pytest.param(Cached("tier_2", 3, 7), True, id="another tier of the same version"),
    ],
)
def test_newer(cached: Cached, newer: bool) -> None:
    assert is_newer(cached, STORED) == newer


def test_a_team_that_the_database_does_not_have() -> None:
    assert is_newer(Cached("tier_1", 1, 1), None)
