-- Notes thresholds that were crossed; returns those that nobody has noted before. Each parameter is
-- an array with one element per threshold.
INSERT INTO spend_threshold (
    message_id, team_id, api_key_id, period, starts_at, ends_at, limit_usd, mode,
    threshold_percent, spent_usd
)
SELECT *
FROM unnest(
    CAST(:message_ids AS text[]),
    CAST(:team_ids AS text[]),
    CAST(:api_key_ids AS text[]),
    CAST(:periods AS text[]),
    CAST(:starts_at AS timestamptz[]),
    CAST(:ends_at AS timestamptz[]),
    CAST(:limits_usd AS numeric[]),
    CAST(:modes AS text[]),
    CAST(:percents AS integer[]),
    CAST(:spent_usd AS numeric[])
)
ON CONFLICT DO NOTHING
RETURNING message_id, crossed_at
