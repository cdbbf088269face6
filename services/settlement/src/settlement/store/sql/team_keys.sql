-- The keys of some teams that may be used.
SELECT team_id, array_agg(key_id) AS key_ids
FROM api_key
WHERE team_id = ANY (CAST(:team_ids AS text[]))
GROUP BY team_id
