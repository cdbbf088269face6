-- Settlement removes what was spent in periods long over. A row that is missing is no zero: who asks
-- again has it summed up from the charges. Thresholds that were told are kept.

CREATE INDEX spend_ends_at_idx ON spend (ends_at);
GRANT DELETE ON spend TO quotagate_settlement;
