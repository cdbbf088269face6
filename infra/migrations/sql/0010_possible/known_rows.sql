-- Where no row breaks them, which is everywhere but after a slip, they hold for all rows.
DO $$
DECLARE
    v_bound record;
BEGIN
    FOR v_bound IN
        SELECT conrelid::regclass AS owner, conname AS name FROM pg_constraint
        WHERE contype = 'c' AND NOT convalidated
            AND conrelid IN ('tier'::regclass, 'api_key'::regclass, 'price'::regclass)
    LOOP
        BEGIN
            EXECUTE format('ALTER TABLE %s VALIDATE CONSTRAINT %I', v_bound.owner, v_bound.name);
        EXCEPTION WHEN check_violation THEN
            RAISE WARNING '% has rows that break %; they are left out and named by who reads them',
                v_bound.owner, v_bound.name;
        END;
    END LOOP;
END
$$;
