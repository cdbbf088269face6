-- The settled balances of some teams, and whether anything of theirs waits for its charge.
SELECT
    team_id, balance_usd, version,
    EXISTS (
        SELECT FROM inference_record
        WHERE inference_record.team_id = account.team_id AND state = 'PENDING'
    ) AS has_pending
FROM account
WHERE team_id = ANY (CAST(:team_ids AS text[]))
