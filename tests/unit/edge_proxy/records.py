"""Records for tests."""

from contracts.inference import InferenceRecord, Outcome, UsageSource


def record(
    inference_id: str,
    attempt_no: int = 1,
    team_id: str = "team",
    outcome: Outcome = Outcome.UNKNOWN,
) -> InferenceRecord:
    """Return a record of an attempt, by default one whose end nobody knows."""
    return InferenceRecord(
        inference_id=inference_id,
        attempt_no=attempt_no,
        team_id=team_id,
        api_key_id="key",
        provider="fake",
        model_asked="m",
        outcome=outcome,
        usage_source=UsageSource.MISSING,
        started_at_us=1,
    )
