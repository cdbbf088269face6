-- The limits of spend of those of the teams that have any, in their tier or of a key's own.
SELECT
    team.team_id,
    coalesce(tier.limits ->> 'time_zone', 'UTC') AS time_zone,
    coalesce(tier.limits -> 'spend_limits', '[]') AS tier_limits,
    coalesce(own.limits, '{}') AS key_limits
FROM team
JOIN tier USING (tier_id)
CROSS JOIN LATERAL (
    SELECT jsonb_object_agg(key_id, api_key.limits -> 'spend_limits') AS limits
    FROM api_key
    WHERE api_key.team_id = team.team_id AND api_key.limits -> 'spend_limits' IS NOT NULL
) AS own
WHERE
    team.team_id = ANY (CAST(:team_ids AS text[]))
    AND (tier.limits -> 'spend_limits' IS NOT NULL OR own.limits IS NOT NULL)
