-- Whether the database itself keeps a record, and the charge of a record, from being there twice.
SELECT count(*) = 2
FROM pg_index
JOIN LATERAL (
    SELECT array_agg(CAST(attname AS text) ORDER BY attname) AS names
    FROM pg_attribute
    WHERE attrelid = indrelid AND attnum = ANY (CAST(indkey AS smallint[]))
) AS columns ON true
WHERE indisunique AND indisvalid AND indpred IS NULL
    AND (
        (indrelid = to_regclass('inference_record') AND names = '{attempt_no,inference_id}')
        OR (indrelid = to_regclass('usage_charge') AND names = '{inference_record_id}')
    )
