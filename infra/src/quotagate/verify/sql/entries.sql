-- Compares each ledger entry with the charges that name it: those of a usage debit add up to its
-- amount, no other entry has any, and none names an entry that isn't there or is another team's.
WITH charged AS (
    SELECT
        ledger_entry_id AS entry_id, sum(amount_usd) AS usd,
        min(team_id) AS first_team_id, max(team_id) AS last_team_id
    FROM usage_charge
    WHERE ledger_entry_id IS NOT NULL
    GROUP BY ledger_entry_id
),
judged AS (
    SELECT
        entry_id, coalesce(entry.team_id, charged.first_team_id) AS team_id,
        entry.amount_usd, coalesce(charged.usd, 0) AS charges_usd,
        first_team_id, last_team_id, entry.team_id AS entry_team_id, entry.reason,
        entry.reason = 'USAGE' AND entry.amount_usd <> coalesce(charged.usd, 0) AS wrong_sum,
        entry.reason <> 'USAGE' AND charged.usd IS NOT NULL AS wrong_reason,
        entry.team_id IS NULL AS wrong_entry,
        first_team_id <> entry.team_id OR last_team_id <> entry.team_id AS wrong_team
    FROM ledger_entry AS entry
    FULL JOIN charged USING (entry_id)
)
SELECT found.kind, team_id, 'ledger entry ' || entry_id AS subject, found.due, found.is
FROM judged
CROSS JOIN LATERAL (
    VALUES
        (
            'entry_is_not_its_charges', wrong_sum,
            CAST(trim_scale(charges_usd) AS text), CAST(trim_scale(amount_usd) AS text)
        ),
        ('charge_of_no_usage_debit', wrong_reason, 'USAGE', reason),
        ('charge_without_entry', wrong_entry, 'an entry', 'none'),
        (
            'charge_of_another_teams_entry', wrong_team, entry_team_id,
            CASE first_team_id WHEN entry_team_id THEN last_team_id ELSE first_team_id END
        )
) AS found (kind, wrong, due, "is")
WHERE (wrong_sum OR wrong_reason OR wrong_entry OR wrong_team) AND found.wrong
