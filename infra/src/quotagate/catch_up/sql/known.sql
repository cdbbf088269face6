-- known
-- The newest record that the database has, by its number and by its place in the stream.
SELECT
    coalesce(max(record_id), 0) AS record_id, coalesce(max(stream_sequence), 0) AS stream_sequence
FROM inference_record
