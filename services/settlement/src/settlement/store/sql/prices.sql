SELECT
    price_id, input_usd_per_million, cache_read_usd_per_million, cache_write_5m_usd_per_million,
    cache_write_1h_usd_per_million, output_usd_per_million, reasoning_usd_per_million
FROM price
WHERE price_id = ANY (CAST(:price_ids AS uuid[]))
