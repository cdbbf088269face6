-- What an API key may use of its team's limits, where it has limits of its own.

ALTER TABLE api_key
    ADD COLUMN limits jsonb NOT NULL DEFAULT '{}',
    ADD CONSTRAINT api_key_limits_check CHECK (jsonb_typeof(limits) = 'object');
GRANT UPDATE (limits) ON api_key TO quotagate_control_plane;
