-- decide
-- Decides about those of the records that are held, and returns which these were.
SELECT record_id
FROM record_decide(
    CAST(:record_ids AS bigint[]), :decision, CAST(:price_id AS uuid), :note
)
