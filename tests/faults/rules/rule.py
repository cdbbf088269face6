"""The rules that a run must not break."""

from dataclasses import dataclass
from enum import StrEnum


class Rule(StrEnum):
    """A promise. The order is the order in a report."""

    SUCCESS_NOT_RECORDED = "success not recorded"
    """An acknowledged success has exactly one record that says so."""
    SUCCESS_NOT_CHARGED = "success not charged"
    """An acknowledged success whose provider reported usage has exactly one charge."""
    CHARGED_TWICE = "charged twice"
    """A record has at most one charge, and what a provider served once is charged once."""
    WRONG_AMOUNT = "wrong amount"
    """A charge is the known usage times the pinned price, to the last digit."""
    CHARGED_UNREPORTED = "charged unreported"
    """Nothing is charged that no provider reported."""
    TOLD_TOO_EARLY = "told too early"
    """A client hears of success only after the stream has its record."""
    ADMITTED_BLINDLY = "admitted blindly"
    """Nobody is admitted while the state of the limits' store is unknown."""
    REFUSED_BUT_SERVED = "refused but served"
    """What was refused reached no provider."""
    REVOKED_KEY_ACCEPTED = "revoked key accepted"
    """A revoked key is refused within a second, unless something is broken at that time."""
    INVISIBLE_REQUEST = "invisible request"
    """Every attempt that a provider saw has a record."""
    SUCCESS_OF_NOBODY = "success of nobody"
    """A client was told of success, but no provider knows of the request."""
    BALANCE_NOT_LEDGER = "balance not ledger"
    """A balance is the sum of its entries, and its versions have no gaps."""
    DEBITS_NOT_CHARGES = "debits not charges"
    """The charges that a usage debit names add up to it."""
    POSTING_NOT_AS_TOLD = "posting not as told"
    """A credit that was acknowledged is in the ledger once, one that was refused is not."""
    CACHE_DIVERGED = "cache diverged"
    """Cached balances and tiers agree with the database within 30 s of rest."""
    VERSION_WENT_BACK = "version went back"
    """A cached balance is never replaced by an older one."""
    DEBITED_TOO_OFTEN = "debited too often"
    """An attempt is debited roughly at most once."""
    RECORD_BEFORE_DEBIT = "record before debit"
    """A record is published after its rough debit, or settling could be undone by it."""
    NOT_SETTLED = "not settled"
    """In the end nothing is pending, and nothing is held that a person needn't see."""
    GIVEN_UP = "given up"
    """No message was given up."""
    CHANGE_NEVER_TOLD = "change never told"
    """A change that counts as published is in the stream of changes."""
    NOT_PROVED = "not proved"
    """`quotagate verify` proves everything that it looks at."""
    NOT_RECOVERED = "not recovered"
    """Everything works again by itself."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: whom it concerns, and the evidence."""

    rule: Rule
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.detail}"
