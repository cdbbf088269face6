-- Which of the stream's messages are not in the database. Each parameter is an array with one
-- element per message; a message without a readable id (NULL) is looked for by its sequence.
SELECT message.sequence
FROM unnest(
    CAST(:sequences AS bigint[]), CAST(:inference_ids AS text[]), CAST(:attempt_nos AS integer[])
) AS message (sequence, inference_id, attempt_no)
WHERE
    NOT EXISTS (
        SELECT FROM inference_record AS record
        WHERE record.inference_id = message.inference_id AND record.attempt_no = message.attempt_no
    )
    AND NOT EXISTS (
        SELECT FROM inference_record AS record
        WHERE message.inference_id IS NULL AND record.stream_sequence = message.sequence
    )
