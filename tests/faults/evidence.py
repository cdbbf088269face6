"""What a run leaves behind: what clients were told, and what the servers have.

Everything is a frozen value without I/O, so that the rules can be tried on histories that are wrong
on purpose. Times are unix microseconds of this machine's wall clock, which clients, the provider,
NATS and Valkey share here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from contracts.usage import Usage, UsdPerMillion


class Told(StrEnum):
    """What a client may believe about its request."""

    COMPLETE = "complete"
    """The whole answer of a success; of a stream, `[DONE]` too."""
    REFUSED = "refused"
    """An answer that says that no provider was called."""
    FAILED = "failed"
    """Another answer, or a stream that ended with an error."""
    CUT = "cut"
    """No whole answer came: the connection broke, or it took too long."""
    LEFT = "left"
    """The client left on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request of a client, who ordered from the provider what it would use.

    `marker` is the trace id that the client sent, and the provider's name for the request.
    """

    marker: str
    team_id: str
    key_id: str
    usage: Usage | None
    """What the provider was ordered to report; None: nothing that can be read."""
    sent_at_us: int
    told: Told
    told_at_us: int
    status: int | None = None
    """None: no answer began."""
    reason: str = ""
    """The error's code and message."""
    inference_id: str | None = None
    limits_shown: bool = False
    """The answer bore the limits after postflight: admission had said that it charged."""


class Certainty(StrEnum):
    """What the operator was told of a change."""

    DONE = "done"
    NOT_DONE = "not_done"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """A credit (above zero) or an adjustment downwards, asked for under a name of its own."""

    name: str
    team_id: str
    amount_usd: Decimal
    certainty: Certainty


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """A key that was revoked; `told_at_us` is when the operator was told so."""

    key_id: str
    told_at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """When a fault was in force, at the longest. Where it is evidence: for sure."""

    fault: str
    target: str
    start_us: int
    end_us: int
    store_unknown: bool = False
    """No admission could know anything of the limits' store between these times."""
    delays_dispatch: bool = False
    """What was admitted before may reach the provider only now: somebody on the way is frozen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One request as the provider's own journal tells it."""

    request_id: str
    marker: str
    received_at_us: int
    outcome: str
    """`completed`, `client_gone`, `dropped`, or `cut`: it died before it could note the end."""
    reported: bool
    """It sent a usage that can be read. Unknown where it was cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A row of inference_record. `marker` is its trace id."""

    record_id: int
    inference_id: str
    attempt_no: int
    team_id: str
    marker: str
    outcome: str
    state: str
    price_id: str | None
    usage: Usage | None
    provider_request_id: str | None
    stream_sequence: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A row of usage_charge."""

    record_id: int
    team_id: str
    amount_usd: Decimal
    entry_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of ledger_entry; `amount_usd` is signed here, above zero raised the balance."""

    entry_id: int
    team_id: str
    reason: str
    amount_usd: Decimal
    balance_after_usd: Decimal
    version: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A team's row of account, and its tier."""

    team_id: str
    balance_usd: Decimal
    version: int
    tier_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """What Valkey holds of a team once everything has come to rest. None: nothing."""

    balance_nano_usd: int | None = None
    version: int | None = None
    tier_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Debit:
    """A rough debit that Valkey carried out, as its own monitor showed it."""

    team_id: str
    amount_nano_usd: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSet:
    """A balance version that Valkey was told to store.

    In another `life`, versions may begin anew: the keys were flushed, or the server restarted.
    """

    team_id: str
    version: int
    at_us: int
    life: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All of it."""

    requests: Sequence[Request] = ()
    postings: Sequence[Posting] = ()
    revocations: Sequence[Revocation] = ()
    windows: Sequence[Window] = ()
    served: Sequence[Served] = ()
    records: Sequence[Record] = ()
    charges: Sequence[Charge] = ()
    entries: Sequence[Entry] = ()
    accounts: Sequence[Account] = ()
    prices: Mapping[str, UsdPerMillion] = field(default_factory=dict)
    cached: Mapping[str, Cached] = field(default_factory=dict)
    published_at_us: Mapping[str, int] = field(default_factory=dict)
    """By message id, when the stream first stored a record."""
    debits: Sequence[Debit] = ()
    versions: Sequence[VersionSet] = ()
    dead_letters: Sequence[str] = ()
    """Reasons of messages that were given up."""
    never_told: Sequence[str] = ()
    """Message ids of changes that count as published and are not in their stream."""
    unproved: Sequence[str] = ()
    """What `quotagate verify` found, or couldn't tell."""
    unrecovered: Sequence[str] = ()
    """What didn't work again although every fault was healed."""
