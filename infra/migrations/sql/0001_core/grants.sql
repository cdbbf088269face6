-- What each service may do. The roles exist already: `quotagate migrate` creates them, with
-- passwords that stand in no migration.

DO $$
BEGIN
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format(
        'GRANT CONNECT ON DATABASE %I'
        ' TO quotagate_tier_cache, quotagate_settlement, quotagate_control_plane',
        current_database()
    );
END
$$;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public
    TO quotagate_tier_cache, quotagate_settlement, quotagate_control_plane;
-- Which revision the database has: for every service that wants to know.
GRANT SELECT ON alembic_version
    TO quotagate_tier_cache, quotagate_settlement, quotagate_control_plane;

-- tier-cache reads five tables and writes nothing.
GRANT SELECT ON team, tier, api_key, account, price TO quotagate_tier_cache;

-- settlement keeps records, charges them, and debits usage. What a record observed stays as it is.
GRANT SELECT ON team, price, account, ledger_entry TO quotagate_settlement;
GRANT SELECT, INSERT, UPDATE (state, settled_at, held_reason) ON inference_record
    TO quotagate_settlement;
GRANT SELECT, INSERT ON usage_charge TO quotagate_settlement;
GRANT EXECUTE ON FUNCTION
    account_lock(text[]),
    account_debit_usage(text, numeric, text, text)
    TO quotagate_settlement;

-- control-plane edits what people decide, credits and corrects, and reads everything.
-- It has no right to write the versions that fence caches: the database raises those.
GRANT SELECT ON account, ledger_entry, inference_record, usage_charge TO quotagate_control_plane;
GRANT SELECT,
    INSERT (team_id, name, tier_id, deleted_at),
    UPDATE (name, tier_id, deleted_at)
    ON team TO quotagate_control_plane;
GRANT SELECT,
    INSERT (tier_id, rpm, tpm, request_burst, token_burst, limits),
    UPDATE (rpm, tpm, request_burst, token_burst, limits)
    ON tier TO quotagate_control_plane;
GRANT SELECT, INSERT, UPDATE (name, allowed_models, expires_at, revoked_at) ON api_key
    TO quotagate_control_plane;
GRANT SELECT, INSERT ON price TO quotagate_control_plane;
GRANT SELECT, INSERT, UPDATE (published_at), DELETE ON outbox TO quotagate_control_plane;
GRANT SELECT, INSERT, UPDATE (status, response), DELETE ON admin_idempotency
    TO quotagate_control_plane;
GRANT EXECUTE ON FUNCTION
    account_credit(text, text, numeric, text, text),
    account_debit_adjustment(text, numeric, text, text)
    TO quotagate_control_plane;
