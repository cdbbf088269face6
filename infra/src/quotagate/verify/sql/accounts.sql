-- Compares each account with the whole of its ledger: the balance is Σ credits − Σ debits, and what
-- the last entry says; the version is the last entry's. Team, account and ledger belong together.
WITH ledger AS (
    SELECT
        team_id, max(account_version) AS version,
        sum(CASE direction WHEN 'CREDIT' THEN amount_usd ELSE -amount_usd END) AS balance_usd
    FROM ledger_entry
    GROUP BY team_id
),
together AS (
    SELECT
        team_id, team.name IS NOT NULL AS has_team, account.version IS NOT NULL AS has_account,
        ledger.version IS NOT NULL AS has_ledger,
        account.balance_usd, account.version,
        coalesce(ledger.balance_usd, 0) AS ledger_usd, coalesce(ledger.version, 0) AS ledger_version
    FROM team
    FULL JOIN account USING (team_id)
    FULL JOIN ledger USING (team_id)
),
judged AS (
    SELECT
        together.*, coalesce(last_entry.balance_after_usd, 0) AS last_usd,
        has_account AND together.balance_usd <> ledger_usd AS wrong_sum,
        has_account AND together.balance_usd <> coalesce(last_entry.balance_after_usd, 0)
            AS wrong_last,
        has_account AND together.version <> ledger_version AS wrong_version
    FROM together
    LEFT JOIN ledger_entry AS last_entry
        ON last_entry.team_id = together.team_id
        AND last_entry.account_version = together.ledger_version
)
SELECT DISTINCT found.kind, team_id, 'account' AS subject, found.due, found.is
FROM judged
CROSS JOIN LATERAL (
    VALUES
        (
            'balance_is_not_the_sum', wrong_sum,
            CAST(trim_scale(ledger_usd) AS text), CAST(trim_scale(balance_usd) AS text)
        ),
        (
            'balance_is_not_the_last', wrong_last,
            CAST(trim_scale(last_usd) AS text), CAST(trim_scale(balance_usd) AS text)
        ),
        ('account_version', wrong_version, CAST(ledger_version AS text), CAST(version AS text)),
        ('team_without_account', has_team AND NOT has_account, 'an account', 'none'),
        ('account_without_team', has_account AND NOT has_team, 'a team', 'none'),
        ('ledger_without_account', has_ledger AND NOT has_account, 'an account', 'none')
) AS found (kind, wrong, due, "is")
WHERE
    (wrong_sum OR wrong_last OR wrong_version OR NOT has_account OR NOT has_team)
    AND found.wrong
