-- Sums of charges. They run with the rights of their owner, so that who may ask what was spent need
-- not see charges and records. A charge belongs to the period in which its attempt ended, as the
-- edge saw it, whenever it is settled.

-- Returns the last version of an account that was written before an instant; 0: none was.
-- Versions have no gaps and rise with the time, so halving finds it, whatever the ledger's length.
CREATE FUNCTION account_version_before(p_team_id text, p_instant timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
AS $$
DECLARE
    v_low bigint := 0;
    v_high bigint;
    v_middle bigint;
    v_is_before boolean;
BEGIN
    SELECT version INTO v_high FROM account WHERE team_id = p_team_id;
    WHILE v_low < v_high LOOP
        v_middle := (v_low + v_high + 1) / 2;
        SELECT created_at < p_instant INTO v_is_before FROM ledger_entry
        WHERE team_id = p_team_id AND account_version = v_middle;
        IF v_is_before THEN
            v_low := v_middle;
        ELSE
            v_high := v_middle - 1;
        END IF;
    END LOOP;
    RETURN v_low;
END
$$;

-- Returns what was settled of a period, and the version of the account as of which it was; NULLs:
-- there is no such account. Key '' is the whole team. To what the row of the period holds come the
-- charges since its version; without a row, those since the period began, less an hour for clocks
-- that are apart. At most p_entries ledger entries are summed up: where there are more, the version
-- is an earlier one than the account's, and the amount is right as of that.
-- STABLE: everything is read as of one moment.
CREATE FUNCTION spend_settled(
    p_team_id text, p_api_key_id text, p_starts_at timestamptz, p_ends_at timestamptz,
    p_entries bigint, OUT amount_usd numeric, OUT account_version bigint
)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
-- A plan made while the tables were small would read them whole when they are large.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_known_usd numeric;
    v_known_version bigint;
BEGIN
    SELECT version INTO account_version FROM account WHERE team_id = p_team_id;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT s.amount_usd, s.account_version INTO v_known_usd, v_known_version FROM spend AS s
    WHERE team_id = p_team_id AND api_key_id = p_api_key_id
        AND starts_at = p_starts_at AND ends_at = p_ends_at;
    IF NOT FOUND THEN
        v_known_usd := 0;
        v_known_version := account_version_before(p_team_id, p_starts_at - interval '1 hour');
    END IF;
    account_version := least(account_version, v_known_version + p_entries);
    SELECT v_known_usd + coalesce(sum(c.amount_usd), 0) INTO amount_usd
    FROM ledger_entry AS e
    JOIN usage_charge AS c ON c.ledger_entry_id = e.entry_id
    JOIN inference_record AS r ON r.record_id = c.inference_record_id
    WHERE e.team_id = p_team_id AND e.account_version > v_known_version
        AND e.account_version <= spend_settled.account_version
        AND (p_api_key_id = '' OR r.api_key_id = p_api_key_id)
        AND coalesce(r.finished_at, r.started_at) >= p_starts_at
        AND coalesce(r.finished_at, r.started_at) < p_ends_at;
END
$$;

-- Returns what was spent in a period: settled, as above, and pending, at the prices that the records
-- pinned. A record without its price will be held, not charged. No row: no such team.
CREATE FUNCTION spend_of(
    p_team_id text, p_api_key_id text, p_starts_at timestamptz, p_ends_at timestamptz
) RETURNS TABLE (settled_usd numeric, pending_usd numeric, account_version bigint)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT
        s.amount_usd,
        (
            SELECT coalesce(sum(
                p.input_usd_per_million * r.input_tokens
                + p.cache_read_usd_per_million * r.cache_read_tokens
                + p.cache_write_5m_usd_per_million * r.cache_write_5m_tokens
                + p.cache_write_1h_usd_per_million * r.cache_write_1h_tokens
                + p.output_usd_per_million * r.output_tokens
                + p.reasoning_usd_per_million * r.reasoning_tokens
            ), 0) * 0.000001
            FROM inference_record AS r
            JOIN price AS p ON CAST(p.price_id AS text) = r.price_id
            WHERE r.team_id = p_team_id AND r.state = 'PENDING'
                AND (p_api_key_id = '' OR r.api_key_id = p_api_key_id)
                AND coalesce(r.finished_at, r.started_at) >= p_starts_at
                AND coalesce(r.finished_at, r.started_at) < p_ends_at
        ),
        s.account_version
    FROM team
    CROSS JOIN LATERAL spend_settled(
        p_team_id, p_api_key_id, p_starts_at, p_ends_at, 9223372036854775807 / 2
    ) AS s
    WHERE team.team_id = p_team_id AND team.deleted_at IS NULL
$$;
