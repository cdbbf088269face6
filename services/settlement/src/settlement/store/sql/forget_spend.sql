-- Removes what was spent in periods that ended so many days ago, some rows of it; by the database's
-- clock. What a late charge needs of them is summed up again.
DELETE FROM spend
WHERE (team_id, api_key_id, starts_at, ends_at) IN (
    SELECT team_id, api_key_id, starts_at, ends_at FROM spend
    WHERE ends_at < now() - CAST(:keep_days AS integer) * interval '1 day'
    ORDER BY ends_at
    LIMIT :most
)
