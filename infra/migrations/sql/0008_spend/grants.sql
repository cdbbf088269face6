-- tier-cache asks what was spent.
GRANT EXECUTE ON FUNCTION spend_of(text, text, timestamptz, timestamptz) TO quotagate_tier_cache;

-- settlement sees who has limits of spend, keeps what was spent, and tells of thresholds.
GRANT SELECT ON tier TO quotagate_settlement;
GRANT SELECT (key_id, team_id, limits) ON api_key TO quotagate_settlement;
GRANT SELECT, INSERT, UPDATE (amount_usd, account_version) ON spend TO quotagate_settlement;
GRANT SELECT, INSERT ON spend_threshold TO quotagate_settlement;
GRANT INSERT (subject, message_id, payload) ON outbox TO quotagate_settlement;
GRANT INSERT (message_id, kind, payload) ON webhook_delivery TO quotagate_settlement;
GRANT EXECUTE ON FUNCTION spend_settled(text, text, timestamptz, timestamptz, bigint)
    TO quotagate_settlement;

-- control-plane shows both and delivers.
GRANT SELECT ON spend, spend_threshold TO quotagate_control_plane;
GRANT SELECT,
    UPDATE (attempts, next_attempt_at, last_status, last_error, delivered_at, given_up_at)
    ON webhook_delivery TO quotagate_control_plane;
