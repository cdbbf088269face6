-- What the schema itself keeps true at the moment: everything that is there, in force and unharmed.
-- Returns kind, table and name as tables.guards spells them.
SELECT 'unique' AS kind, CAST(table_.relname AS text) AS table_name, indexed.names AS name
FROM pg_index
JOIN pg_class AS table_ ON table_.oid = indrelid
CROSS JOIN LATERAL (
    SELECT string_agg(attname, ', ' ORDER BY place) AS names
    FROM unnest(CAST(indkey AS smallint[])) WITH ORDINALITY AS part (attnum, place)
    JOIN pg_attribute ON attrelid = indrelid AND pg_attribute.attnum = part.attnum
) AS indexed
WHERE
    relnamespace = CAST('public' AS regnamespace)
    AND indisunique AND indisvalid AND indisready AND indimmediate
    AND indpred IS NULL AND indexprs IS NULL
UNION ALL
SELECT
    CASE contype WHEN 'f' THEN 'foreign key' ELSE 'check' END, CAST(table_.relname AS text),
    CAST(conname AS text)
FROM pg_constraint
JOIN pg_class AS table_ ON table_.oid = conrelid
WHERE
    relnamespace = CAST('public' AS regnamespace) AND contype IN ('f', 'c') AND convalidated
    -- From Postgres 18 on a constraint may be there and not be enforced.
    AND coalesce(to_jsonb(pg_constraint) ->> 'conenforced', 'true') = 'true'
    -- DISABLE TRIGGER ALL also switches off what enforces a foreign key.
    AND NOT EXISTS (
        SELECT FROM pg_trigger WHERE tgconstraint = pg_constraint.oid AND tgenabled = 'D'
    )
UNION ALL
SELECT
    CASE tgenabled WHEN 'A' THEN 'always trigger' ELSE 'trigger' END,
    CAST(table_.relname AS text), CAST(tgname AS text)
FROM pg_trigger
JOIN pg_class AS table_ ON table_.oid = tgrelid
WHERE
    relnamespace = CAST('public' AS regnamespace) AND NOT tgisinternal AND tgenabled IN ('A', 'O')
UNION ALL
SELECT 'logged table', CAST(relname AS text), ''
FROM pg_class
WHERE relnamespace = CAST('public' AS regnamespace) AND relkind = 'r' AND relpersistence = 'p'
UNION ALL
-- A function that runs with its owner's rights, on a search path that nobody else can choose.
SELECT 'definer function', '', CAST(proname AS text)
FROM pg_proc
WHERE
    pronamespace = CAST('public' AS regnamespace) AND prosecdef
    AND 'search_path=public, pg_temp' = ANY (proconfig)
