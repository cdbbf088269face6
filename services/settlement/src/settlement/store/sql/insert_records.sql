-- Stores a batch of records in one statement; those that are stored already stay as they are.
-- Each parameter is an array with one element per record.
-- Returns the ids of those that were new, and the numbers of their rows.
INSERT INTO inference_record (
    inference_id, attempt_no, team_id, api_key_id, endpoint, provider, model_asked, model_sent,
    model_served, price_id, tier_id, outcome, usage_source, input_tokens, cache_read_tokens,
    cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, usage_reported,
    provider_request_id, streaming, client_gone, started_at, first_byte_at, finished_at,
    status_code, trace_id, state, held_reason, stream_sequence
)
SELECT *
FROM unnest(
    CAST(:inference_id AS text[]),
    CAST(:attempt_no AS integer[]),
    CAST(:team_id AS text[]),
    CAST(:api_key_id AS text[]),
    CAST(:endpoint AS text[]),
    CAST(:provider AS text[]),
    CAST(:model_asked AS text[]),
    CAST(:model_sent AS text[]),
    CAST(:model_served AS text[]),
    CAST(:price_id AS text[]),
    CAST(:tier_id AS text[]),
    CAST(:outcome AS text[]),
    CAST(:usage_source AS text[]),
    CAST(:input_tokens AS bigint[]),
    CAST(:cache_read_tokens AS bigint[]),
    CAST(:cache_write_5m_tokens AS bigint[]),
    CAST(:cache_write_1h_tokens AS bigint[]),
    CAST(:output_tokens AS bigint[]),
    CAST(:reasoning_tokens AS bigint[]),
    CAST(:usage_reported AS text[]),
    CAST(:provider_request_id AS text[]),
    CAST(:streaming AS boolean[]),
    CAST(:client_gone AS boolean[]),
    CAST(:started_at AS timestamptz[]),
    CAST(:first_byte_at AS timestamptz[]),
    CAST(:finished_at AS timestamptz[]),
    CAST(:status_code AS integer[]),
    CAST(:trace_id AS text[]),
    CAST(:state AS text[]),
    CAST(:held_reason AS text[]),
    CAST(:stream_sequence AS bigint[])
)
ON CONFLICT (inference_id, attempt_no) DO NOTHING
RETURNING inference_id, attempt_no, record_id
