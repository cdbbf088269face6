-- The oldest pending records of the teams whose accounts this transaction holds: of one team after
-- the other, until there are enough. So only the team of the last row may have more.
SELECT record.*
FROM unnest(CAST(:team_ids AS text[])) AS held (team_id)
CROSS JOIN LATERAL (
    SELECT
        record_id, team_id, api_key_id, coalesce(finished_at, started_at) AS ended_at, price_id,
        input_tokens, cache_read_tokens, cache_write_5m_tokens,
        cache_write_1h_tokens, output_tokens, reasoning_tokens
    FROM inference_record
    WHERE inference_record.team_id = held.team_id AND state = 'PENDING'
    ORDER BY inference_record.team_id, record_id
    LIMIT :records
) AS record
LIMIT :records
