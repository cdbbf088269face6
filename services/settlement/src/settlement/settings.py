"""What settlement reads from its environment."""

from pydantic import Field

from kit.settings import NatsSettings, PostgresSettings, RedisSettings, TracesSettings


class Settings(NatsSettings, RedisSettings, PostgresSettings, TracesSettings):
    """Settlement's settings."""

    port: int = Field(18084, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    consume_batch_records: int = Field(
        500, ge=1, le=10_000, description="Records taken off the stream and stored together."
    )
    niceness: int = Field(
        0,
        ge=0,
        le=19,
        description="How far this process lets others of its machine go first; more than 0 where it"
        " shares its cores with what answers clients.",
    )
    gather_ms: int = Field(
        100,
        ge=0,
        le=5_000,
        description="Milliseconds that a record waits for others, to be stored and charged with"
        " them; a batch costs nearly the same whatever is in it.",
    )
    ack_wait_s: float = Field(
        30.0,
        ge=1,
        description="Seconds after which a record that a dead replica took is delivered again;"
        " a replica that is still at work extends them.",
    )
    max_deliver: int = Field(
        10, ge=3, description="Deliveries of a record before it becomes a dead letter."
    )
    max_usage_tokens: int = Field(
        1_000_000_000,
        ge=1,
        le=2**62,
        description="Tokens of one class beyond which a record is held for a person.",
    )
    settle_batch_records: int = Field(
        1_000, ge=1, le=10_000, description="Records charged in one transaction, at most."
    )
    settle_batch_accounts: int = Field(
        50, ge=1, le=1_000, description="Accounts charged in one transaction, at most."
    )
    settle_interval_s: float = Field(
        1.0, gt=0, description="Seconds between looks for records to charge when nothing arrives."
    )
    reconcile_interval_s: float = Field(
        10.0,
        gt=0,
        description="Seconds between comparisons of cached and settled balances. A difference is"
        " repaired at the second look.",
    )
    trim_interval_s: float = Field(
        60.0, gt=0, description="Seconds between removals of what the stream need not keep."
    )
    replay_window_s: int = Field(
        86_400,
        ge=0,
        description="Seconds that the stream keeps a record after it was settled, so that a"
        " restored database can catch up.",
    )
    early_trim_share: float = Field(
        0.8,
        gt=0,
        le=1,
        description="Share of what the stream may hold beyond which settled records are removed"
        " before the replay window ends, the oldest first.",
    )
    early_trim_interval_s: float = Field(
        5.0,
        gt=0,
        description="Seconds between looks at how full the stream is; less may arrive in them than"
        " the rest of the share.",
    )
    spend_keep_days: int = Field(
        400,
        ge=0,
        le=100_000,
        description="Days after the end of a day or month for which what was spent in it stays"
        " summed up in the table `spend`; 0: for ever. Charges, ledger and thresholds always stay.",
    )
    measure_interval_s: float = Field(
        5.0, gt=0, description="Seconds between measurements of the settlement lag."
    )
