-- What a unique key keeps from being there twice, counted without trusting that it is there.
SELECT
    'duplicate_record' AS kind, min(team_id) AS team_id,
    'records ' || min(record_id) || ' to ' || max(record_id) || ' of inference ' || inference_id
        || ' attempt ' || attempt_no AS subject,
    '1' AS due, CAST(count(*) AS text) AS "is"
FROM inference_record
GROUP BY inference_id, attempt_no
HAVING count(*) > 1
UNION ALL
SELECT
    'duplicate_charge', min(team_id), 'charges of record ' || inference_record_id, '1',
    CAST(count(*) AS text)
FROM usage_charge
GROUP BY inference_record_id
HAVING count(*) > 1
