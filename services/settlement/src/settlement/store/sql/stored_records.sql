-- What is stored under the given ids, as far as it decides what is charged.
SELECT
    inference_id, attempt_no, stream_sequence, team_id, price_id, input_tokens, cache_read_tokens,
    cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens
FROM inference_record
JOIN unnest(CAST(:inference_id AS text[]), CAST(:attempt_no AS integer[]))
    AS wanted (inference_id, attempt_no) USING (inference_id, attempt_no)
