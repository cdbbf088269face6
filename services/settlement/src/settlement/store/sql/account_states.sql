-- The settled balances of some teams, and whether anything of theirs waits for its charge.
SELECT
    account.team_id, account.balance_usd, account.version,
    EXISTS (
        SELECT FROM inference_record
        WHERE inference_record.team_id = account.team_id AND state = 'PENDING'
    ) AS has_pending
FROM account
WHERE account.team_id = ANY (CAST(:team_ids AS text[]))
