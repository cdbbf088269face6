-- What is always true, checked by the database itself and against its owner too: these triggers
-- are ENABLE ALWAYS, so that session_replication_role doesn't switch them off.

-- Ledger entries, usage charges and prices are written once.
CREATE FUNCTION refuse_change() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: its rows are written once', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER ledger_entry_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entry
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER usage_charge_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON usage_charge
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER price_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON price
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER account_stays BEFORE DELETE OR TRUNCATE ON account
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE ledger_entry ENABLE ALWAYS TRIGGER ledger_entry_is_append_only;
ALTER TABLE usage_charge ENABLE ALWAYS TRIGGER usage_charge_is_append_only;
ALTER TABLE price ENABLE ALWAYS TRIGGER price_is_append_only;
ALTER TABLE account ENABLE ALWAYS TRIGGER account_stays;

-- A balance is what the entry of its version says, and versions only go up, by one: no balance
-- moves without an entry, nor back to what an earlier entry said.
CREATE FUNCTION account_matches_ledger() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
BEGIN
    IF TG_OP = 'INSERT' AND NEW.version = 0 AND NEW.balance_usd = 0 THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.version <> OLD.version + 1 THEN
        RAISE EXCEPTION 'the version of account % must go from % to %, not to %',
            NEW.team_id, OLD.version, OLD.version + 1, NEW.version
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM FROM ledger_entry
    WHERE team_id = NEW.team_id AND account_version = NEW.version
        AND balance_after_usd = NEW.balance_usd;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the balance of account % is not that of its last ledger entry',
            NEW.team_id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER account_matches_ledger AFTER INSERT OR UPDATE ON account
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION account_matches_ledger();
ALTER TABLE account ENABLE ALWAYS TRIGGER account_matches_ledger;

-- An entry follows the one before it, is the account's, and, for USAGE, is the sum of its charges.
CREATE FUNCTION ledger_entry_adds_up() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
-- A plan made while the table was small would scan it when it is large.
SET enable_seqscan = off
AS $$
DECLARE
    v_change_usd numeric :=
        CASE NEW.direction WHEN 'CREDIT' THEN NEW.amount_usd ELSE -NEW.amount_usd END;
    v_balance_before_usd numeric := 0;
    v_charges_usd numeric;
BEGIN
    IF NEW.account_version > 1 THEN
        SELECT balance_after_usd INTO v_balance_before_usd FROM ledger_entry
        WHERE team_id = NEW.team_id AND account_version = NEW.account_version - 1;
    END IF;
    IF NEW.balance_after_usd IS DISTINCT FROM v_balance_before_usd + v_change_usd THEN
        RAISE EXCEPTION 'ledger entry % does not follow the entry before it', NEW.entry_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    PERFORM FROM account WHERE team_id = NEW.team_id AND version >= NEW.account_version;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'ledger entry % is ahead of its account', NEW.entry_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.reason = 'USAGE' THEN
        SELECT sum(amount_usd) INTO v_charges_usd FROM usage_charge
        WHERE ledger_entry_id = NEW.entry_id;
        IF v_charges_usd IS DISTINCT FROM NEW.amount_usd THEN
            RAISE EXCEPTION 'the charges of ledger entry % add up to %, not to %', NEW.entry_id,
                coalesce(v_charges_usd, 0), NEW.amount_usd
                USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    END IF;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER ledger_entry_adds_up AFTER INSERT ON ledger_entry
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION ledger_entry_adds_up();
ALTER TABLE ledger_entry ENABLE ALWAYS TRIGGER ledger_entry_adds_up;

-- A charge can't be added to an entry that is full already, that is, after its commit; nor to
-- one that isn't for usage. Once per statement, whatever the number of charges.
CREATE FUNCTION usage_charges_fit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
-- A plan made while the tables were small would read them whole when they are large; only a
-- nested loop over the new charges stays as cheap as it was.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_entry_id bigint;
BEGIN
    SELECT e.entry_id INTO v_entry_id
    FROM (SELECT DISTINCT ledger_entry_id FROM new_charge) AS n
    JOIN ledger_entry AS e ON e.entry_id = n.ledger_entry_id
    WHERE e.reason <> 'USAGE'
        OR e.amount_usd < (
            SELECT sum(c.amount_usd) FROM usage_charge AS c WHERE c.ledger_entry_id = e.entry_id
        )
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'ledger entry % takes no such charge', v_entry_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER usage_charges_fit AFTER INSERT ON usage_charge
    REFERENCING NEW TABLE AS new_charge
    FOR EACH STATEMENT EXECUTE FUNCTION usage_charges_fit();
ALTER TABLE usage_charge ENABLE ALWAYS TRIGGER usage_charges_fit;
