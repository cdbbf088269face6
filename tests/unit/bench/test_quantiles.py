"""Quantiles by nearest rank: each is a value that occurred, and nothing is smoothed away."""

import pytest
from bench.quantiles import latencies, quantile


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        pytest.param([7], 0.5, 7, id="the only value is every quantile"),
        pytest.param([1, 2, 3, 4], 0.5, 2, id="half of an even number: the lower middle"),
        pytest.param([1, 2, 3], 0.5, 2, id="half of an odd number: the middle"),
        pytest.param(list(range(1, 101)), 0.99, 99, id="99 of 100"),
        pytest.param(list(range(1, 102)), 0.99, 100, id="a share of a value is rounded up"),
        pytest.param([1, 2, 3], 0, 1, id="nothing: the smallest"),
        pytest.param([1, 2, 3], 1, 3, id="everything: the largest"),
    ],
)
def test_a_quantile_is_the_smallest_value_that_the_share_does_not_exceed(
    values: list[int], share: float, expected: int
) -> None:
    assert quantile(values, share) == expected


@pytest.mark.parametrize(
    ("values", "share"),
    [
        pytest.param([], 0.5, id="no values"),
        pytest.param([1], 1.1, id="more than everything"),
        pytest.param([1], -0.1, id="less than nothing"),
    ],
)
def test_there_is_no_such_quantile(values: list[int], share: float) -> None:
    with pytest.raises(ValueError, match="quantile"):
        quantile(values, share)


def test_latencies_need_not_be_sorted_and_are_told_in_milliseconds() -> None:
    found = latencies([3_000, 1_000, 2_000, 40_000])
    assert (found.count, found.p50_ms, found.p99_ms, found.longest_ms) == (4, 2.0, 40.0, 40.0)
