-- What waits: counted through the partial indexes of what is pending and held.
SELECT
    (SELECT count(*) FROM inference_record WHERE state = 'PENDING') AS pending,
    (
        SELECT min(coalesce(finished_at, started_at)) FROM inference_record
        WHERE state = 'PENDING'
    ) AS oldest_pending_at,
    (SELECT count(*) FROM inference_record WHERE state = 'HELD') AS held,
    (SELECT count(*) FROM account WHERE balance_usd < 0) AS negative_balances
