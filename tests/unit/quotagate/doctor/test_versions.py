"""Versions below what is tested."""

import pytest

from quotagate.doctor.examined import version_flaws

CASES = [
    pytest.param("2.12.8", (2, 12), True, id="newer"),
    pytest.param("2.12.0", (2, 12), True, id="just"),
    pytest.param("2.11.9", (2, 12), False, id="older"),
    pytest.param("3.0.0", (2, 12), True, id="next major"),
    pytest.param("2.9.9", (2, 12), False, id="numbers, not texts"),
    pytest.param("2.12.0-beta.1", (2, 12), True, id="before a release"),
    pytest.param("16.2 (Debian 16.2-1)", (15,), True, id="a distribution's words"),
    pytest.param("18beta1", (15,), True, id="letters behind the number"),
    pytest.param("14.1", (15,), False, id="an old major"),
    pytest.param("", (15,), False, id="unknown"),
]


@pytest.mark.parametrize(("found", "least", "enough"), CASES)
def test_a_version_is_compared(found: str, least: tuple[int, ...], enough: bool) -> None:
    assert (version_flaws("server", found, least, "It is.") == []) == enough
