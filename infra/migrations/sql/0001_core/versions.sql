-- Versions that fence caches, raised by the database, so that no change can forget to.

CREATE FUNCTION team_raise_tier_version() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.tier_version := OLD.tier_version + (NEW.tier_id <> OLD.tier_id)::integer;
    RETURN NEW;
END
$$;
CREATE TRIGGER team_raise_tier_version BEFORE UPDATE ON team
    FOR EACH ROW EXECUTE FUNCTION team_raise_tier_version();

CREATE FUNCTION tier_raise_version() RETURNS trigger
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
BEGIN
    NEW.version := OLD.version + 1;
    NEW.updated_at := clock_timestamp();
    RETURN NEW;
END
$$;
CREATE TRIGGER tier_raise_version BEFORE UPDATE ON tier
    FOR EACH ROW EXECUTE FUNCTION tier_raise_version();
