-- The stream sequences of stored records from one on, before another, and since when each needs
-- nothing more from the stream. Unknown spend and what a person must look at need nothing once they
-- are stored. A stream that was made anew counts from one again: what waits under a number decides.
SELECT
    stream_sequence,
    CASE WHEN bool_and(state <> 'PENDING') THEN max(coalesce(settled_at, received_at)) END
        AS done_at
FROM inference_record
WHERE stream_sequence >= :first AND stream_sequence < :end
GROUP BY stream_sequence
ORDER BY stream_sequence
LIMIT :records
