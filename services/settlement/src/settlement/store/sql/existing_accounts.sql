SELECT team_id FROM account WHERE team_id = ANY (CAST(:team_ids AS text[]))
