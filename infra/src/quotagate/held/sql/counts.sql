-- counts
-- How many records are held, by reason. A parameter that is NULL chooses all.
SELECT held_reason AS reason, count(*) AS records
FROM inference_record
WHERE state = 'HELD'
    AND team_id = coalesce(CAST(:team_id AS text), team_id)
    AND held_reason = coalesce(CAST(:reason AS text), held_reason)
GROUP BY held_reason
ORDER BY held_reason
