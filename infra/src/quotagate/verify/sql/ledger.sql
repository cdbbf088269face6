-- Walks each account's ledger along its versions: 1, 2, 3, … without a gap or a repetition, and
-- each balance is the one before it plus the credit or minus the debit.
WITH walked AS (
    SELECT
        team_id, entry_id, amount_usd, balance_after_usd, account_version,
        coalesce(lag(account_version) OVER account_order, 0) + 1 AS version_due,
        coalesce(lag(balance_after_usd) OVER account_order, 0)
            + CASE direction WHEN 'CREDIT' THEN amount_usd ELSE -amount_usd END AS balance_due_usd
    FROM ledger_entry
    WINDOW account_order AS (PARTITION BY team_id ORDER BY account_version, entry_id)
),
judged AS (
    SELECT
        *,
        account_version <> version_due AS wrong_version,
        balance_after_usd <> balance_due_usd AS wrong_balance,
        NOT (amount_usd > 0 AND amount_usd < 'Infinity') AS wrong_amount
    FROM walked
)
SELECT found.kind, team_id, 'ledger entry ' || entry_id AS subject, found.due, found.is
FROM judged
CROSS JOIN LATERAL (
    VALUES
        ('ledger_version', wrong_version, CAST(version_due AS text), CAST(account_version AS text)),
        (
            'running_balance', wrong_balance,
            CAST(trim_scale(balance_due_usd) AS text),
            CAST(trim_scale(balance_after_usd) AS text)
        ),
        ('entry_amount', wrong_amount, 'a number above zero', CAST(trim_scale(amount_usd) AS text))
) AS found (kind, wrong, due, "is")
WHERE (wrong_version OR wrong_balance OR wrong_amount) AND found.wrong
