-- The teams after a given one that have records to charge, in id order. Jumps from team to team
-- through the index of what is pending, so a team with many records costs no more than another.
WITH RECURSIVE waiting AS (
    (
        SELECT team_id FROM inference_record
        WHERE state = 'PENDING' AND team_id > :after
        ORDER BY team_id
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT next.team_id FROM inference_record AS next
        WHERE next.state = 'PENDING' AND next.team_id > waiting.team_id
        ORDER BY next.team_id
        LIMIT 1
    )
    FROM waiting
    WHERE waiting.team_id IS NOT NULL
)
SELECT team_id FROM waiting WHERE team_id IS NOT NULL LIMIT :teams
