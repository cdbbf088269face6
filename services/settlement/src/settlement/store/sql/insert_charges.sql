-- Each parameter is an array with one element per charge.
INSERT INTO usage_charge (inference_record_id, team_id, price_id, amount_usd, ledger_entry_id)
SELECT *
FROM unnest(
    CAST(:record_id AS bigint[]),
    CAST(:team_id AS text[]),
    CAST(:price_id AS uuid[]),
    CAST(:amount_usd AS numeric[]),
    CAST(:ledger_entry_id AS bigint[])
)
