-- tier-cache counts a team's day from the stream too, and so has to know which records are stored.

GRANT SELECT (inference_id) ON inference_record TO quotagate_tier_cache;
