-- Owes events to the bus and to the webhook. Each array has one element per event.
WITH event AS (
    SELECT *
    FROM unnest(
        CAST(:message_ids AS text[]), CAST(:subjects AS text[]), CAST(:payloads AS bytea[])
    ) AS owed (message_id, subject, payload)
),
to_the_bus AS (
    INSERT INTO outbox (subject, message_id, payload)
    SELECT subject, message_id, payload FROM event
)
INSERT INTO webhook_delivery (message_id, kind, payload)
SELECT message_id, :kind, payload FROM event
