-- What the server is.
SELECT
    current_setting('server_version') AS version,
    pg_is_in_recovery() AS is_standby,
    CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) AS now_us
