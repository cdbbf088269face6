-- The secret that a key had before, for as long as both are accepted.

ALTER TABLE api_key
    ADD COLUMN old_secret_hash bytea,
    ADD COLUMN old_secret_until timestamptz,
    ADD CONSTRAINT api_key_old_secret_check CHECK (
        (old_secret_hash IS NULL) = (old_secret_until IS NULL)
        AND octet_length(old_secret_hash) = 32
    );
GRANT UPDATE (secret_hash, old_secret_hash, old_secret_until) ON api_key TO quotagate_control_plane;
