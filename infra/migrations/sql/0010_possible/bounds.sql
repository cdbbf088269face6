-- The bounds that the admin API has, for whoever writes past it. NOT VALID: a row from before, which
-- its readers leave out and name, must not stop the migration; what is written from now on is held
-- to them.

ALTER TABLE tier
    DROP CONSTRAINT tier_rpm_check,
    DROP CONSTRAINT tier_tpm_check,
    DROP CONSTRAINT tier_request_burst_check,
    DROP CONSTRAINT tier_token_burst_check,
    DROP CONSTRAINT tier_limits_check,
    ADD CONSTRAINT tier_rpm_check CHECK (rpm BETWEEN 1 AND 60000000) NOT VALID,
    ADD CONSTRAINT tier_tpm_check CHECK (tpm BETWEEN 1 AND 1000000000000) NOT VALID,
    ADD CONSTRAINT tier_request_burst_check
        CHECK (request_burst BETWEEN 0 AND 60000000) NOT VALID,
    ADD CONSTRAINT tier_token_burst_check
        CHECK (token_burst BETWEEN 0 AND 1000000000000) NOT VALID,
    -- Amounts of money and weights are texts; every number anywhere in it counts something.
    ADD CONSTRAINT tier_limits_check CHECK (
        jsonb_typeof(limits) = 'object'
        AND NOT limits @? '$.** ? (@ < 0 || @ > 1000000000000000 || @.floor() != @)'
    ) NOT VALID;

ALTER TABLE api_key
    DROP CONSTRAINT api_key_limits_check,
    ADD CONSTRAINT api_key_limits_check CHECK (
        jsonb_typeof(limits) = 'object'
        AND NOT limits @? '$.** ? (@ < 0 || @ > 1000000000000000 || @.floor() != @)'
    ) NOT VALID;

ALTER TABLE price
    DROP CONSTRAINT price_input_usd_per_million_check,
    DROP CONSTRAINT price_cache_read_usd_per_million_check,
    DROP CONSTRAINT price_cache_write_5m_usd_per_million_check,
    DROP CONSTRAINT price_cache_write_1h_usd_per_million_check,
    DROP CONSTRAINT price_output_usd_per_million_check,
    DROP CONSTRAINT price_reasoning_usd_per_million_check,
    ADD CONSTRAINT price_input_usd_per_million_check
        CHECK (input_usd_per_million BETWEEN 0 AND 1000000) NOT VALID,
    ADD CONSTRAINT price_cache_read_usd_per_million_check
        CHECK (cache_read_usd_per_million BETWEEN 0 AND 1000000) NOT VALID,
    ADD CONSTRAINT price_cache_write_5m_usd_per_million_check
        CHECK (cache_write_5m_usd_per_million BETWEEN 0 AND 1000000) NOT VALID,
    ADD CONSTRAINT price_cache_write_1h_usd_per_million_check
        CHECK (cache_write_1h_usd_per_million BETWEEN 0 AND 1000000) NOT VALID,
    ADD CONSTRAINT price_output_usd_per_million_check
        CHECK (output_usd_per_million BETWEEN 0 AND 1000000) NOT VALID,
    ADD CONSTRAINT price_reasoning_usd_per_million_check
        CHECK (reasoning_usd_per_million BETWEEN 0 AND 1000000) NOT VALID;
