-- tier-cache counts a team's day; it sees neither models nor providers nor outcomes.

GRANT SELECT (
    team_id, attempt_no, started_at, finished_at,
    input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens,
    output_tokens, reasoning_tokens
) ON inference_record TO quotagate_tier_cache;
