-- teams
-- What the caches may know of some teams: the mapping to the tier, and the account's version.
SELECT team_id, tier_id, tier_version, account.version AS account_version
FROM team
JOIN account USING (team_id)
WHERE team_id = ANY (CAST(:team_ids AS text[]))
