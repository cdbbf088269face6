-- The records from one stream sequence on, before another, and since when each needs nothing more
-- from the stream. Unknown spend and what a person must look at need nothing once they are stored.
SELECT
    stream_sequence,
    CASE state WHEN 'PENDING' THEN NULL WHEN 'SETTLED' THEN settled_at ELSE received_at END
        AS done_at
FROM inference_record
WHERE stream_sequence >= :first AND stream_sequence < :end
ORDER BY stream_sequence
LIMIT :records
