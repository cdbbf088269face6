-- records
-- The oldest held records, each with the price of its model that was in effect when it started.
-- A parameter that is NULL chooses all.
SELECT
    record_id, team_id, inference_id, attempt_no, held_reason AS reason, record.provider,
    model_sent AS model,
    -- In numeric: a held record may have more tokens than a bigint can add up.
    CAST(input_tokens AS numeric) + cache_read_tokens + cache_write_5m_tokens
        + cache_write_1h_tokens + output_tokens + reasoning_tokens AS tokens,
    record.price_id, CAST(price_then.price_id AS text) AS price_then, started_at
FROM inference_record AS record
LEFT JOIN LATERAL (
    SELECT price_id FROM price
    WHERE price.provider = record.provider AND price.model = record.model_sent
        AND effective_from <= record.started_at
    ORDER BY effective_from DESC
    LIMIT 1
) AS price_then ON true
WHERE state = 'HELD'
    AND team_id = coalesce(CAST(:team_id AS text), team_id)
    AND held_reason = coalesce(CAST(:reason AS text), held_reason)
ORDER BY record_id
LIMIT :listed
