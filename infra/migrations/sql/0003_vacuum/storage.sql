-- Every record is written twice, when it is stored and when it is settled, so half of the row
-- versions die. The server's default waits for a fifth of the table: with a hundred million records
-- for twenty million dead rows, and for as many changes until the planner hears of them. What a
-- vacuum costs grows with the pages that changed, so small and often is not more work: 0.2 s for
-- 100,000 dead rows among a million.

ALTER TABLE inference_record SET (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);
