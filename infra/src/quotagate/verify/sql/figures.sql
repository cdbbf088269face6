-- What there is, so that a report also says what it looked at.
SELECT
    (SELECT count(*) FROM account) AS accounts,
    (SELECT coalesce(sum(balance_usd), 0) FROM account) AS balance_usd,
    (SELECT count(*) FROM ledger_entry) AS ledger_entries,
    (SELECT count(*) FROM usage_charge) AS usage_charges,
    (SELECT coalesce(sum(amount_usd), 0) FROM usage_charge) AS charged_usd,
    record.*
FROM (
    SELECT
        count(*) AS records,
        count(*) FILTER (WHERE state = 'SETTLED') AS settled,
        count(*) FILTER (WHERE state = 'PENDING') AS pending,
        count(*) FILTER (WHERE state = 'UNBILLABLE') AS unbillable,
        count(*) FILTER (WHERE state = 'HELD') AS held,
        count(*) FILTER (WHERE state = 'WRITTEN_OFF') AS written_off
    FROM inference_record
) AS record
