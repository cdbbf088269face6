-- Attempts without usage and failed attempts of some days (UTC, by the edge's clock at their start),
-- counted by all that a report tells apart. Parameters: since and until, instants, until excluded.
SELECT
    CAST(started_at AT TIME ZONE 'UTC' AS date) AS day,
    provider, coalesce(model_sent, model_asked) AS model,
    outcome, status_code, usage_source = 'missing' AS without_usage, count(*) AS attempts
FROM inference_record
WHERE
    started_at >= CAST(:since AS timestamptz) AND started_at < CAST(:until AS timestamptz)
    AND (usage_source = 'missing' OR outcome = 'failed')
GROUP BY day, provider, model, outcome, status_code, without_usage
ORDER BY day, provider, model
