-- The account's functions: the only ways to change a balance or to write a ledger entry.
--
-- They run with the rights of their owner, because no service has rights on the two tables.
-- Which service may credit or debit for which reason is decided by who may execute which
-- function (grants.sql), so there is nothing to check at run time that could be forgotten.
-- search_path is pinned in each, or a caller could put a table of its own before ours.
--
-- Errors: QG001 there is no such account, QG002 the amount is not a finite number above zero.

-- A function is for nobody until it is granted.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;

-- Moves a balance and writes the entry. Granted to nobody; the functions below call it.
-- The UPDATE locks the account until the transaction ends, and works on the latest balance.
CREATE FUNCTION account_post(
    p_team_id text, p_direction text, p_reason text, p_amount_usd numeric,
    p_reference text, p_note text
) RETURNS ledger_entry
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    v_account account;
    v_entry ledger_entry;
BEGIN
    IF p_amount_usd IS NULL OR p_amount_usd <= 0 OR p_amount_usd >= 'Infinity' THEN
        RAISE EXCEPTION 'an amount must be a finite number above zero' USING ERRCODE = 'QG002';
    END IF;
    UPDATE account
    SET balance_usd = balance_usd
            + CASE p_direction WHEN 'CREDIT' THEN p_amount_usd ELSE -p_amount_usd END,
        version = version + 1
    WHERE team_id = p_team_id
    RETURNING * INTO v_account;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no account of team %', quote_nullable(p_team_id)
            USING ERRCODE = 'QG001';
    END IF;
    INSERT INTO ledger_entry (
        team_id, direction, reason, amount_usd, balance_after_usd, account_version,
        reference, note
    )
    VALUES (
        p_team_id, p_direction, p_reason, p_amount_usd, v_account.balance_usd, v_account.version,
        p_reference, p_note
    )
    RETURNING * INTO v_entry;
    RETURN v_entry;
END
$$;

-- The control plane: money was paid in (CREDIT), or a person corrected upwards (ADJUSTMENT).
CREATE FUNCTION account_credit(
    p_team_id text, p_reason text, p_amount_usd numeric, p_reference text, p_note text
) RETURNS ledger_entry
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT account_post(p_team_id, 'CREDIT', p_reason, p_amount_usd, p_reference, p_note)
$$;

-- The control plane: a person corrected downwards. The one reason is fixed, USAGE is out of reach.
CREATE FUNCTION account_debit_adjustment(
    p_team_id text, p_amount_usd numeric, p_reference text, p_note text
) RETURNS ledger_entry
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT account_post(p_team_id, 'DEBIT', 'ADJUSTMENT', p_amount_usd, p_reference, p_note)
$$;

-- Settlement: usage charges, whose sum is the amount.
CREATE FUNCTION account_debit_usage(
    p_team_id text, p_amount_usd numeric, p_reference text, p_note text
) RETURNS ledger_entry
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT account_post(p_team_id, 'DEBIT', 'USAGE', p_amount_usd, p_reference, p_note)
$$;

-- Settlement: locks those of the accounts that nobody holds, in id order; skips the others.
-- A service can't do it itself: Postgres asks for UPDATE rights on what is locked.
CREATE FUNCTION account_lock(p_team_ids text[]) RETURNS SETOF account
LANGUAGE sql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT * FROM account WHERE team_id = ANY (p_team_ids) ORDER BY team_id
    FOR NO KEY UPDATE SKIP LOCKED
$$;

-- Every team has an account from its first moment.
CREATE FUNCTION team_open_account() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
BEGIN
    INSERT INTO account (team_id) VALUES (NEW.team_id);
    RETURN NULL;
END
$$;
CREATE TRIGGER team_open_account AFTER INSERT ON team
    FOR EACH ROW EXECUTE FUNCTION team_open_account();
