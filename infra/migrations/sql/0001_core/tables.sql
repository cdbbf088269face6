-- The tables; shared/src/tables describes each column, and a test compares the two.
-- Ids are COLLATE "C", so that ORDER BY locks accounts in the order every process sorts them.
-- Every amount has an upper bound, because Postgres sorts NaN above all numbers.

CREATE TABLE tier (
    tier_id text COLLATE "C" PRIMARY KEY,
    rpm bigint NOT NULL,
    tpm bigint NOT NULL,
    request_burst bigint NOT NULL DEFAULT 0,
    token_burst bigint NOT NULL DEFAULT 0,
    limits jsonb NOT NULL DEFAULT '{}',
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT tier_tier_id_check CHECK (tier_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    CONSTRAINT tier_rpm_check CHECK (rpm > 0),
    CONSTRAINT tier_tpm_check CHECK (tpm > 0),
    CONSTRAINT tier_request_burst_check CHECK (request_burst >= 0),
    CONSTRAINT tier_token_burst_check CHECK (token_burst >= 0),
    CONSTRAINT tier_limits_check CHECK (jsonb_typeof(limits) = 'object')
);

CREATE TABLE team (
    team_id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    tier_id text COLLATE "C" NOT NULL REFERENCES tier,
    tier_version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    CONSTRAINT team_team_id_check CHECK (team_id ~ '^[A-Za-z0-9_-]{1,64}$')
);

CREATE TABLE api_key (
    key_id text COLLATE "C" PRIMARY KEY,
    team_id text COLLATE "C" NOT NULL REFERENCES team,
    name text NOT NULL,
    secret_hash bytea NOT NULL,
    allowed_models text[],
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT api_key_key_id_check CHECK (key_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    CONSTRAINT api_key_secret_hash_check CHECK (octet_length(secret_hash) = 32)
);
CREATE INDEX api_key_team_id_idx ON api_key (team_id);

CREATE TABLE account (
    team_id text COLLATE "C" PRIMARY KEY REFERENCES team,
    balance_usd numeric NOT NULL DEFAULT 0,
    version bigint NOT NULL DEFAULT 0,
    CONSTRAINT account_balance_usd_check
        CHECK (balance_usd > '-Infinity' AND balance_usd < 'Infinity'),
    CONSTRAINT account_version_check CHECK (version >= 0)
);

CREATE TABLE ledger_entry (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team_id text COLLATE "C" NOT NULL REFERENCES account,
    direction text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    amount_usd numeric NOT NULL,
    balance_after_usd numeric NOT NULL,
    account_version bigint NOT NULL,
    reference text,
    note text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (team_id, account_version),
    -- What a charge refers to, so that it can't name another team's entry. It doesn't begin with
    -- the team, or a look-up by team and version might take it and read all entries of the team.
    UNIQUE (entry_id, team_id),
    CONSTRAINT ledger_entry_amount_usd_check CHECK (amount_usd > 0 AND amount_usd < 'Infinity'),
    CONSTRAINT ledger_entry_account_version_check CHECK (account_version > 0),
    CONSTRAINT ledger_entry_reason_check CHECK (
        (direction, reason) IN (
            ('CREDIT', 'CREDIT'), ('CREDIT', 'ADJUSTMENT'),
            ('DEBIT', 'ADJUSTMENT'), ('DEBIT', 'USAGE')
        )
    )
);

CREATE TABLE price (
    price_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    provider text NOT NULL,
    model text NOT NULL,
    input_usd_per_million numeric NOT NULL,
    cache_read_usd_per_million numeric NOT NULL,
    cache_write_5m_usd_per_million numeric NOT NULL,
    cache_write_1h_usd_per_million numeric NOT NULL,
    output_usd_per_million numeric NOT NULL,
    reasoning_usd_per_million numeric NOT NULL,
    effective_from timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (provider, model, effective_from),
    CONSTRAINT price_input_usd_per_million_check
        CHECK (input_usd_per_million >= 0 AND input_usd_per_million < 'Infinity'),
    CONSTRAINT price_cache_read_usd_per_million_check
        CHECK (cache_read_usd_per_million >= 0 AND cache_read_usd_per_million < 'Infinity'),
    CONSTRAINT price_cache_write_5m_usd_per_million_check
        CHECK (cache_write_5m_usd_per_million >= 0 AND cache_write_5m_usd_per_million < 'Infinity'),
    CONSTRAINT price_cache_write_1h_usd_per_million_check
        CHECK (cache_write_1h_usd_per_million >= 0 AND cache_write_1h_usd_per_million < 'Infinity'),
    CONSTRAINT price_output_usd_per_million_check
        CHECK (output_usd_per_million >= 0 AND output_usd_per_million < 'Infinity'),
    CONSTRAINT price_reasoning_usd_per_million_check
        CHECK (reasoning_usd_per_million >= 0 AND reasoning_usd_per_million < 'Infinity')
);

-- No foreign keys and no triggers: an observation is kept whatever it names, and a batch of a
-- thousand is inserted in one statement.
CREATE TABLE inference_record (
    record_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    inference_id text COLLATE "C" NOT NULL,
    attempt_no integer NOT NULL,
    team_id text COLLATE "C" NOT NULL,
    api_key_id text COLLATE "C" NOT NULL,
    endpoint text NOT NULL,
    provider text NOT NULL,
    model_asked text NOT NULL,
    model_sent text,
    model_served text,
    price_id text COLLATE "C",
    tier_id text COLLATE "C",
    outcome text NOT NULL,
    usage_source text NOT NULL,
    input_tokens bigint,
    cache_read_tokens bigint,
    cache_write_5m_tokens bigint,
    cache_write_1h_tokens bigint,
    output_tokens bigint,
    reasoning_tokens bigint,
    usage_reported text,
    provider_request_id text,
    streaming boolean NOT NULL,
    client_gone boolean NOT NULL,
    started_at timestamptz NOT NULL,
    first_byte_at timestamptz,
    finished_at timestamptz,
    status_code integer,
    trace_id text,
    state text COLLATE "C" NOT NULL,
    held_reason text,
    stream_sequence bigint NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    settled_at timestamptz,
    UNIQUE (inference_id, attempt_no),
    -- What a charge refers to, so that it can't name another team's record; and a team's pages.
    UNIQUE (team_id, record_id),
    CONSTRAINT inference_record_attempt_no_check CHECK (attempt_no > 0),
    CONSTRAINT inference_record_state_check
        CHECK (state IN ('PENDING', 'SETTLED', 'UNBILLABLE', 'HELD')),
    CONSTRAINT inference_record_settled_at_check
        CHECK ((state = 'SETTLED') = (settled_at IS NOT NULL)),
    CONSTRAINT inference_record_held_reason_check
        CHECK ((state = 'HELD') = (held_reason IS NOT NULL)),
    CONSTRAINT inference_record_pending_usage_check CHECK (
        state <> 'PENDING'
        OR num_nulls(
            input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens,
            output_tokens, reasoning_tokens
        ) = 0
    ),
    CONSTRAINT inference_record_input_tokens_check CHECK (input_tokens >= 0),
    CONSTRAINT inference_record_cache_read_tokens_check CHECK (cache_read_tokens >= 0),
    CONSTRAINT inference_record_cache_write_5m_tokens_check CHECK (cache_write_5m_tokens >= 0),
    CONSTRAINT inference_record_cache_write_1h_tokens_check CHECK (cache_write_1h_tokens >= 0),
    CONSTRAINT inference_record_output_tokens_check CHECK (output_tokens >= 0),
    CONSTRAINT inference_record_reasoning_tokens_check CHECK (reasoning_tokens >= 0)
);
CREATE INDEX inference_record_pending_idx ON inference_record (team_id, record_id)
    WHERE state = 'PENDING';
-- How far the stream may be trimmed is found by walking it from its first sequence.
CREATE INDEX inference_record_stream_sequence_idx ON inference_record (stream_sequence);
CREATE INDEX inference_record_held_idx ON inference_record (record_id)
    WHERE state = 'HELD';

CREATE TABLE usage_charge (
    inference_record_id bigint PRIMARY KEY,
    team_id text COLLATE "C" NOT NULL,
    price_id uuid NOT NULL REFERENCES price,
    amount_usd numeric NOT NULL,
    ledger_entry_id bigint,
    created_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (team_id, inference_record_id) REFERENCES inference_record (team_id, record_id),
    FOREIGN KEY (ledger_entry_id, team_id) REFERENCES ledger_entry (entry_id, team_id),
    CONSTRAINT usage_charge_amount_usd_check CHECK (amount_usd >= 0 AND amount_usd < 'Infinity'),
    CONSTRAINT usage_charge_ledger_entry_id_check
        CHECK (amount_usd = 0 OR ledger_entry_id IS NOT NULL)
);
CREATE INDEX usage_charge_ledger_entry_id_idx ON usage_charge (ledger_entry_id);

CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subject text NOT NULL,
    message_id text COLLATE "C" NOT NULL UNIQUE,
    payload bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz
);
CREATE INDEX outbox_unpublished_idx ON outbox (id) WHERE published_at IS NULL;

CREATE TABLE admin_idempotency (
    key text COLLATE "C",
    route text COLLATE "C",
    request_hash bytea NOT NULL,
    status smallint,
    response bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (key, route),
    CONSTRAINT admin_idempotency_request_hash_check CHECK (octet_length(request_hash) = 32),
    CONSTRAINT admin_idempotency_response_check CHECK ((status IS NULL) = (response IS NULL))
);
CREATE INDEX admin_idempotency_created_at_idx ON admin_idempotency (created_at);
