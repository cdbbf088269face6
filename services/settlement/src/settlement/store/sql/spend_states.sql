-- What was settled of each period, and whether anything of its team waits for its charge. Each
-- parameter is an array with one element per period.
SELECT
    wanted.team_id, wanted.api_key_id, wanted.starts_at, wanted.ends_at,
    settled.amount_usd, settled.account_version,
    settled.account_version = account.version AS is_current,
    EXISTS (
        SELECT FROM inference_record
        WHERE inference_record.team_id = wanted.team_id AND state = 'PENDING'
    ) AS has_pending
FROM unnest(
    CAST(:team_ids AS text[]),
    CAST(:api_key_ids AS text[]),
    CAST(:starts_at AS timestamptz[]),
    CAST(:ends_at AS timestamptz[])
) AS wanted (team_id, api_key_id, starts_at, ends_at)
JOIN account USING (team_id)
CROSS JOIN LATERAL spend_settled(
    wanted.team_id, wanted.api_key_id, wanted.starts_at, wanted.ends_at, :entries
) AS settled
