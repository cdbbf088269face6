-- A record that settlement held is decided by a person: released, to be charged as it is, or
-- written off, so that nobody pays for it. Each decision is kept.
--
-- Errors: QG003 the price is not one of the record's model that was in effect when it started.

ALTER TABLE inference_record
    DROP CONSTRAINT inference_record_state_check,
    ADD CONSTRAINT inference_record_state_check
        CHECK (state IN ('PENDING', 'SETTLED', 'UNBILLABLE', 'HELD', 'WRITTEN_OFF')) NOT VALID;

CREATE TABLE record_decision (
    decision_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    record_id bigint NOT NULL REFERENCES inference_record,
    decision text COLLATE "C" NOT NULL,
    held_reason text NOT NULL,
    observed_price_id text COLLATE "C",
    price_id uuid REFERENCES price,
    note text NOT NULL,
    decided_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT record_decision_decision_check CHECK (decision IN ('RELEASED', 'WRITTEN_OFF')),
    CONSTRAINT record_decision_note_check CHECK (note <> '')
);
CREATE INDEX record_decision_record_id_idx ON record_decision (record_id);

CREATE TRIGGER record_decision_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON record_decision
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE record_decision ENABLE ALWAYS TRIGGER record_decision_is_append_only;

-- Decides about those of the records that are held; returns the decisions. With a price, they are
-- charged by that one: it takes the place of what they named, which the decision keeps.
-- Granted to nobody: the owner's alone.
CREATE FUNCTION record_decide(
    p_record_ids bigint[], p_decision text, p_price_id uuid, p_note text
) RETURNS SETOF record_decision
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    v_record_id bigint;
BEGIN
    SELECT record_id INTO v_record_id FROM inference_record AS record
    WHERE record_id = ANY (p_record_ids) AND state = 'HELD' AND p_price_id IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM price
            WHERE price_id = p_price_id AND price.provider = record.provider
                AND price.model = record.model_sent AND effective_from <= record.started_at
        )
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'price % was not in effect for the model of record % when it started',
            p_price_id, v_record_id USING ERRCODE = 'QG003';
    END IF;
    RETURN QUERY
    WITH held AS (
        SELECT record_id, held_reason, price_id FROM inference_record
        WHERE record_id = ANY (p_record_ids) AND state = 'HELD'
        ORDER BY record_id
        FOR NO KEY UPDATE
    ),
    changed AS (
        UPDATE inference_record AS record
        SET state = CASE p_decision WHEN 'RELEASED' THEN 'PENDING' ELSE p_decision END,
            held_reason = NULL,
            price_id = coalesce(CAST(p_price_id AS text), record.price_id)
        FROM held WHERE record.record_id = held.record_id
        RETURNING record.record_id
    )
    INSERT INTO record_decision
        (record_id, decision, held_reason, observed_price_id, price_id, note)
    SELECT record_id, p_decision, held.held_reason, held.price_id, p_price_id, p_note
    FROM held JOIN changed USING (record_id)
    RETURNING *;
END
$$;
