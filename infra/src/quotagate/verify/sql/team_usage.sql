-- Compares, for each team, Σ usage debits with Σ usage charges.
WITH debited AS (
    SELECT team_id, sum(amount_usd) AS usd
    FROM ledger_entry
    WHERE reason = 'USAGE'
    GROUP BY team_id
),
charged AS (
    SELECT team_id, sum(amount_usd) AS usd
    FROM usage_charge
    GROUP BY team_id
)
SELECT
    'team_usage' AS kind, team_id, 'all usage debits' AS subject,
    CAST(trim_scale(coalesce(charged.usd, 0)) AS text) AS due,
    CAST(trim_scale(coalesce(debited.usd, 0)) AS text) AS "is"
FROM debited
FULL JOIN charged USING (team_id)
WHERE coalesce(debited.usd, 0) <> coalesce(charged.usd, 0)
