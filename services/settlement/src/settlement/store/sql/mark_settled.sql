UPDATE inference_record
SET state = 'SETTLED', settled_at = clock_timestamp()
WHERE record_id = ANY (CAST(:record_ids AS bigint[])) AND state = 'PENDING'
