-- Compares each record with its charge and the price it pinned. The amount is exactly
-- Σ tokens × USD per million ÷ 10⁶: multiplied by 0.000001, because a division of numeric rounds.
-- A price id was observed as text in whatever form; "the same" means the same 128 bits.
-- Parameters: pending_limit_s, how long a record may wait for its charge; clock_tolerance_s, how
-- far the clocks may differ by which a price is chosen and a record's start is read.
WITH compared AS (
    SELECT
        record.record_id, record.team_id, record.state, record.provider, record.model_sent,
        record.price_id AS pinned_id, record.started_at, record.received_at,
        charge.inference_record_id AS charged_id, charge.team_id AS charge_team_id,
        charge.amount_usd, charge.ledger_entry_id, charge.price_id,
        price.provider AS price_provider, price.model AS price_model, price.effective_from,
        num_nulls(
            input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens,
            output_tokens, reasoning_tokens
        ) AS unknown_classes,
        0.000001 * (
            input_tokens * input_usd_per_million
            + cache_read_tokens * cache_read_usd_per_million
            + cache_write_5m_tokens * cache_write_5m_usd_per_million
            + cache_write_1h_tokens * cache_write_1h_usd_per_million
            + output_tokens * output_usd_per_million
            + reasoning_tokens * reasoning_usd_per_million
        ) AS due_usd
    FROM inference_record AS record
    FULL JOIN usage_charge AS charge ON charge.inference_record_id = record.record_id
    LEFT JOIN price ON price.price_id = charge.price_id
),
judged AS (
    SELECT
        *,
        charged_id IS NULL AND state = 'SETTLED' AS no_charge,
        record_id IS NULL AS no_record,
        charged_id IS NOT NULL AND state <> 'SETTLED' AS not_settled,
        charged_id = record_id AND unknown_classes > 0 AS no_usage,
        -- Infinity and NaN equal themselves, and a price could be one: an amount must be less.
        amount_usd <> due_usd OR NOT amount_usd < 'Infinity' AS wrong_amount,
        price_id IS NOT NULL AND record_id IS NOT NULL
            AND pinned_id IS DISTINCT FROM CAST(price_id AS text)
            AND regexp_replace(lower(pinned_id), 'urn:|uuid:|[{}-]', '', 'g')
                IS DISTINCT FROM replace(CAST(price_id AS text), '-', '') AS other_price,
        charged_id IS NOT NULL AND price_provider IS NULL AS no_price,
        price_provider <> provider OR price_model <> model_sent AS wrong_model,
        effective_from > started_at + make_interval(secs => :clock_tolerance_s) AS too_early,
        charge_team_id <> team_id AS wrong_team,
        amount_usd > 0 AND ledger_entry_id IS NULL AS no_debit,
        state = 'UNBILLABLE' AND unknown_classes < 6 AS not_charged,
        state = 'PENDING' AND received_at < now() - make_interval(secs => :pending_limit_s)
            AS waits
    FROM compared
)
SELECT
    found.kind, coalesce(team_id, charge_team_id) AS team_id,
    'record ' || coalesce(record_id, charged_id) AS subject, found.due, found.is
FROM judged
CROSS JOIN LATERAL (
    VALUES
        ('record_without_charge', no_charge, 'a charge', 'none'),
        ('charge_without_record', no_record, 'a record', 'none'),
        ('charge_of_unsettled_record', not_settled, 'SETTLED', state),
        ('charge_without_usage', no_usage, 'no charge', CAST(trim_scale(amount_usd) AS text)),
        (
            'charge_amount', wrong_amount,
            CAST(trim_scale(due_usd) AS text), CAST(trim_scale(amount_usd) AS text)
        ),
        ('charge_by_another_price', other_price, pinned_id, CAST(price_id AS text)),
        ('charge_without_price', no_price, 'a price', CAST(price_id AS text)),
        (
            'price_of_another_model', wrong_model,
            provider || ' ' || coalesce(model_sent, '?'), price_provider || ' ' || price_model
        ),
        (
            'price_not_in_effect', too_early,
            'in effect at ' || CAST(started_at AS text), CAST(effective_from AS text)
        ),
        ('charge_of_another_team', wrong_team, team_id, charge_team_id),
        ('charge_without_debit', no_debit, 'a ledger entry', 'none'),
        ('usage_not_charged', not_charged, 'PENDING or SETTLED', state),
        ('pending_too_long', waits, 'a charge', 'PENDING since ' || CAST(received_at AS text))
) AS found (kind, wrong, due, "is")
WHERE
    (
        no_charge OR no_record OR not_settled OR no_usage OR wrong_amount OR other_price
        OR no_price OR wrong_model OR too_early OR wrong_team OR no_debit OR not_charged OR waits
    )
    AND found.wrong
