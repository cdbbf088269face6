-- Holds what waits for accounts that don't exist.
UPDATE inference_record
SET state = 'HELD', held_reason = :reason
WHERE team_id = ANY (CAST(:team_ids AS text[])) AND state = 'PENDING'
    AND NOT EXISTS (SELECT FROM account WHERE account.team_id = inference_record.team_id)
