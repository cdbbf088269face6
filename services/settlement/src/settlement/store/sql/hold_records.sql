UPDATE inference_record
SET state = 'HELD', held_reason = held.reason
FROM unnest(CAST(:record_ids AS bigint[]), CAST(:reasons AS text[])) AS held (record_id, reason)
WHERE inference_record.record_id = held.record_id AND state = 'PENDING'
