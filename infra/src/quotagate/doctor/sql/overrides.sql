-- Settings that a role or a database has of its own, which `SHOW` in another session doesn't show.
-- The role of a database's own setting is `-`.
SELECT
    CAST(CAST(setrole AS regrole) AS text) AS role,
    split_part(pair, '=', 1) AS name, split_part(pair, '=', 2) AS value
FROM pg_db_role_setting
CROSS JOIN LATERAL unnest(setconfig) AS pair
WHERE
    setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
