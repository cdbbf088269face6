-- Sums up what was settled of each period since it was last. Each parameter is an array with one
-- element per period. Only who holds the accounts may do this, so nobody does it at the same time.
INSERT INTO spend AS stored
    (team_id, api_key_id, starts_at, ends_at, amount_usd, account_version)
SELECT wanted.*, settled.amount_usd, settled.account_version
FROM unnest(
    CAST(:team_ids AS text[]),
    CAST(:api_key_ids AS text[]),
    CAST(:starts_at AS timestamptz[]),
    CAST(:ends_at AS timestamptz[])
) AS wanted (team_id, api_key_id, starts_at, ends_at)
CROSS JOIN LATERAL spend_settled(
    wanted.team_id, wanted.api_key_id, wanted.starts_at, wanted.ends_at, :entries
) AS settled
WHERE settled.account_version IS NOT NULL
ON CONFLICT (team_id, api_key_id, starts_at, ends_at) DO UPDATE
SET amount_usd = EXCLUDED.amount_usd, account_version = EXCLUDED.account_version
RETURNING
    stored.team_id, stored.api_key_id, stored.starts_at, stored.ends_at, stored.amount_usd,
    stored.account_version,
    stored.account_version = (
        SELECT version FROM account WHERE account.team_id = stored.team_id
    ) AS is_current
