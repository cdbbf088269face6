-- Each table's columns.
SELECT relname, array_agg(CAST(attname AS text)) AS names
FROM pg_class
JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
WHERE relnamespace = CAST('public' AS regnamespace) AND relkind = 'r'
GROUP BY relname
