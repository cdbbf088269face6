-- What was spent in a calendar day or month, as of a version of the account. Only for teams whose
-- tier or key has a limit of spend; a row that is missing is summed up from the charges.
CREATE TABLE spend (
    team_id text COLLATE "C" NOT NULL REFERENCES account,
    -- '' is the whole team.
    api_key_id text COLLATE "C" NOT NULL,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    amount_usd numeric NOT NULL,
    account_version bigint NOT NULL,
    PRIMARY KEY (team_id, api_key_id, starts_at, ends_at),
    CONSTRAINT spend_amount_usd_check CHECK (amount_usd >= 0 AND amount_usd < 'Infinity'),
    CONSTRAINT spend_account_version_check CHECK (account_version >= 0),
    CONSTRAINT spend_ends_at_check CHECK (ends_at > starts_at)
);

-- A threshold is crossed once a period, whoever settles, and however often.
CREATE TABLE spend_threshold (
    message_id text COLLATE "C" PRIMARY KEY,
    team_id text COLLATE "C" NOT NULL REFERENCES account,
    api_key_id text COLLATE "C" NOT NULL,
    period text COLLATE "C" NOT NULL,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    limit_usd numeric NOT NULL,
    mode text COLLATE "C" NOT NULL,
    threshold_percent integer NOT NULL,
    spent_usd numeric NOT NULL,
    crossed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT spend_threshold_once_key UNIQUE (
        team_id, api_key_id, period, starts_at, ends_at, limit_usd, threshold_percent
    ),
    CONSTRAINT spend_threshold_period_check CHECK (period IN ('day', 'month')),
    CONSTRAINT spend_threshold_mode_check CHECK (mode IN ('hard', 'soft')),
    CONSTRAINT spend_threshold_limit_usd_check CHECK (limit_usd > 0 AND limit_usd < 'Infinity'),
    CONSTRAINT spend_threshold_spent_usd_check CHECK (spent_usd > 0 AND spent_usd < 'Infinity'),
    CONSTRAINT spend_threshold_threshold_percent_check CHECK (threshold_percent > 0)
);
CREATE INDEX spend_threshold_team_id_crossed_at_idx ON spend_threshold (team_id, crossed_at);
CREATE TRIGGER spend_threshold_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE
    ON spend_threshold FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
ALTER TABLE spend_threshold ENABLE ALWAYS TRIGGER spend_threshold_is_append_only;

-- An event that is owed to the webhook, beside the outbox that owes it to the bus.
CREATE TABLE webhook_delivery (
    message_id text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_status integer,
    last_error text,
    delivered_at timestamptz,
    given_up_at timestamptz,
    CONSTRAINT webhook_delivery_attempts_check CHECK (attempts >= 0),
    CONSTRAINT webhook_delivery_given_up_at_check
        CHECK (delivered_at IS NULL OR given_up_at IS NULL)
);
CREATE INDEX webhook_delivery_owed_idx ON webhook_delivery (next_attempt_at)
    WHERE delivered_at IS NULL AND given_up_at IS NULL;
CREATE INDEX webhook_delivery_created_at_message_id_idx
    ON webhook_delivery (created_at, message_id);

-- Whose keys have limits of spend of their own: asked with every batch that settlement charges.
CREATE INDEX api_key_spend_limits_idx ON api_key (team_id)
    WHERE limits -> 'spend_limits' IS NOT NULL;
