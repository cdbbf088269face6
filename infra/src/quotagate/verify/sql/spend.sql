-- Compares what is kept as spent in a period with the charges up to its version.
WITH charge AS (
    SELECT
        entry.team_id, entry.account_version, record.api_key_id, usage_charge.amount_usd,
        coalesce(record.finished_at, record.started_at) AS ended_at
    FROM ledger_entry AS entry
    JOIN usage_charge ON usage_charge.ledger_entry_id = entry.entry_id
    JOIN inference_record AS record ON record.record_id = usage_charge.inference_record_id
    WHERE entry.team_id IN (SELECT team_id FROM spend)
),
summed AS (
    SELECT
        spend.team_id, spend.api_key_id, spend.starts_at, spend.ends_at, spend.amount_usd,
        coalesce(sum(charge.amount_usd), 0) AS due_usd
    FROM spend
    LEFT JOIN charge
        ON charge.team_id = spend.team_id AND charge.account_version <= spend.account_version
        AND charge.ended_at >= spend.starts_at AND charge.ended_at < spend.ends_at
        AND spend.api_key_id IN ('', charge.api_key_id)
    GROUP BY spend.team_id, spend.api_key_id, spend.starts_at, spend.ends_at
)
SELECT
    'spend_amount' AS kind, team_id,
    CASE api_key_id WHEN '' THEN 'all keys' ELSE 'key ' || api_key_id END
        || ' from ' || CAST(starts_at AS text) AS subject,
    CAST(trim_scale(due_usd) AS text) AS due, CAST(trim_scale(amount_usd) AS text) AS "is"
FROM summed
WHERE amount_usd <> due_usd
