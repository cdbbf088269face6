"""What settlement counts. Label sets are closed: never a team, a key or a model."""

from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

from settlement.domain.spending import Crossing

CONSUMED = Counter(
    "quotagate_records_consumed_total",
    "Records taken off the stream, by what became of them; known ones were stored before.",
    ["outcome"],
)
SETTLED = Counter("quotagate_records_settled_total", "Records that were charged.")
HELD = Counter(
    "quotagate_records_held_total", "Records kept for a person, by the reason.", ["reason"]
)
CONFIRMATIONS_MISSING = Counter(
    "quotagate_settlement_unconfirmed_acks_total",
    "Acknowledgements of stored records that the stream didn't confirm; they come again.",
)
DEAD_LETTERS = Counter(
    "quotagate_settlement_dead_letters_total",
    "Messages that could not be settled, by the reason.",
    ["reason"],
)
REFRESHES = Counter(
    "quotagate_balance_refreshes_total",
    "Refreshes of cached balances after a settlement, by result.",
    ["result"],
)
SPEND_REFRESHES = Counter(
    "quotagate_spend_refreshes_total",
    "Refreshes of counted spend after a settlement, by result.",
    ["result"],
)
SPEND_THRESHOLDS = Counter(
    "quotagate_spend_thresholds_total",
    "Thresholds of spend limits that were crossed, by the limit's period and mode.",
    ["period", "mode"],
)
SPEND_REPAIRS = Counter(
    "quotagate_spend_repairs_total",
    "Counted spend that had drifted without traffic, by what was done about it.",
    ["result"],
)
REPAIRS = Counter(
    "quotagate_balance_repairs_total",
    "Cached balances that had drifted without traffic, by what was done about them.",
    ["result"],
)
DRIFT = Histogram(
    "quotagate_balance_drift_nano_usd",
    "Difference between settled and cached balance where one was repaired, without its sign.",
    buckets=tuple(10**exponent for exponent in range(13)),
)
FAILURES = Counter(
    "quotagate_settlement_failures_total", "Rounds that failed and were tried again.", ["loop"]
)
LAG_S = Gauge(
    "quotagate_settlement_lag_seconds", "Age of the oldest record that is not settled; 0: none."
)
UNSETTLED = Gauge(
    "quotagate_unsettled_records",
    "Records not settled: unread in the stream, pending in the database, held for a person.",
    ["where"],
)
NEGATIVE_BALANCES = Gauge("quotagate_negative_balances", "Accounts whose settled balance is < 0.")
STREAM_BYTES = Gauge(
    "quotagate_record_stream_bytes", "Bytes that the stream of inference records holds."
)
STREAM_MAX_BYTES = Gauge(
    "quotagate_record_stream_max_bytes",
    "Bytes that it may hold before calls are refused; 0: as much as the server's disk.",
)
TRIMMED = Counter(
    "quotagate_record_stream_trimmed_total",
    "Sequences removed from the stream: in time, or early because it was nearly full.",
    ["when"],
)


def count_crossed(crossed: Iterable[Crossing]) -> None:
    """Count thresholds that were told for the first time."""
    for each in crossed:
        SPEND_THRESHOLDS.labels(each.limit.period.value, each.limit.mode.value).inc()
