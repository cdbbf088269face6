"""What a record adds to a day: its request when it began, its tokens when it ended."""

import pytest

from contracts.inference import InferenceRecord, Outcome, UsageSource
from contracts.usage import Usage
from tier_cache.domain.days import Day, Share, share_of

DAY = Day(1_000, 2_000)


def record(
    started_at_us: int,
    finished_at_us: int | None,
    attempt_no: int = 1,
    usage: Usage | None = Usage(input=5, cache_read=3, output=2),  # noqa: B008 - it is frozen
) -> InferenceRecord:
    return InferenceRecord(
        inference_id="i",
        attempt_no=attempt_no,
        team_id="t",
        api_key_id="k",
        provider="p",
        model_asked="m",
        outcome=Outcome.SUCCEEDED,
        usage_source=UsageSource.PROVIDER,
        started_at_us=started_at_us,
        finished_at_us=finished_at_us,
        usage=usage,
    )


@pytest.mark.parametrize(
    ("observed", "requests", "tokens"),
    [
        pytest.param(record(1_000, 1_999), 1, 10, id="within the day"),
        pytest.param(record(1_999, 2_000), 1, 0, id="began in it, ended after it"),
        pytest.param(record(999, 1_000), 0, 10, id="began before it, ended in it"),
        pytest.param(record(1_500, None), 1, 10, id="without an end: when it began"),
        pytest.param(record(1_500, 1_600, attempt_no=2), 0, 10, id="a further attempt"),
        pytest.param(record(1_500, 1_600, usage=None), 1, 0, id="without usage"),
    ],
)
def test_a_share(observed: InferenceRecord, requests: int, tokens: int) -> None:
    assert share_of(observed, DAY) == Share("i", observed.attempt_no, requests, tokens)


@pytest.mark.parametrize(
    "observed",
    [
        pytest.param(record(1, 2), id="before the day"),
        pytest.param(record(2_000, 2_001), id="after it"),
        pytest.param(record(1_500, 1_600, attempt_no=2, usage=None), id="nothing used again"),
    ],
)
def test_no_share(observed: InferenceRecord) -> None:
    assert share_of(observed, DAY) is None
