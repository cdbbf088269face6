-- What the services' roles may do at the moment, whether it was granted to them, to PUBLIC or to a
-- role that they inherit from: one row per role, right, table and column, or function.
-- The parameter is the array of roles; those that don't exist give no rows.
SELECT role.rolname AS role, wanted.right, table_.relname AS thing, attname AS column_name
FROM pg_roles AS role
CROSS JOIN pg_class AS table_
JOIN pg_attribute ON attrelid = table_.oid AND attnum > 0 AND NOT attisdropped
CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE')) AS wanted ("right")
WHERE
    role.rolname = ANY (CAST(:roles AS text[]))
    AND table_.relnamespace = CAST('public' AS regnamespace) AND table_.relkind = 'r'
    AND has_column_privilege(role.oid, table_.oid, attnum, wanted.right)
UNION ALL
SELECT role.rolname, wanted.right, table_.relname, '*'
FROM pg_roles AS role
CROSS JOIN pg_class AS table_
CROSS JOIN (VALUES ('DELETE'), ('TRUNCATE'), ('REFERENCES'), ('TRIGGER')) AS wanted ("right")
WHERE
    role.rolname = ANY (CAST(:roles AS text[]))
    AND table_.relnamespace = CAST('public' AS regnamespace) AND table_.relkind = 'r'
    AND has_table_privilege(role.oid, table_.oid, wanted.right)
UNION ALL
SELECT role.rolname, 'EXECUTE', proname, '*'
FROM pg_roles AS role
CROSS JOIN pg_proc
WHERE
    role.rolname = ANY (CAST(:roles AS text[]))
    AND pronamespace = CAST('public' AS regnamespace)
    AND has_function_privilege(role.oid, pg_proc.oid, 'EXECUTE')
