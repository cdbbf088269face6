-- What we recorded of a provider, by day (UTC, by the edge's clock at the attempt's start) and model.
-- Parameters: provider; since and until, instants, until excluded; by_served, whether a model is
-- called as the provider called it in its answer, or as we asked for it.
SELECT
    CAST(started_at AT TIME ZONE 'UTC' AS date) AS day,
    CASE WHEN :by_served THEN coalesce(model_served, model_sent, model_asked)
        ELSE coalesce(model_sent, model_asked) END AS model,
    count(*) FILTER (WHERE usage_source <> 'missing') AS requests,
    coalesce(sum(input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens), 0)
        AS input_tokens,
    coalesce(sum(input_tokens), 0) AS uncached_input_tokens,
    coalesce(sum(cache_read_tokens), 0) AS cached_tokens,
    coalesce(sum(cache_write_5m_tokens + cache_write_1h_tokens), 0) AS cache_write_tokens,
    coalesce(sum(output_tokens + reasoning_tokens), 0) AS output_tokens,
    coalesce(sum(amount_usd), 0) AS cost_usd,
    count(*) FILTER (WHERE usage_source = 'missing') AS without_usage,
    count(*) FILTER (WHERE state IN ('PENDING', 'HELD')) AS uncharged
FROM inference_record
LEFT JOIN usage_charge ON inference_record_id = record_id
WHERE
    provider = :provider
    AND started_at >= CAST(:since AS timestamptz) AND started_at < CAST(:until AS timestamptz)
GROUP BY day, model
