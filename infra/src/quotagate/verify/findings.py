"""What verify can find, and the report of what it found."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Kind(StrEnum):
    """What is wrong. Each breaks one promise; :data:`SENTENCES` says it for people."""

    LEDGER_VERSION = "ledger_version"
    RUNNING_BALANCE = "running_balance"
    ENTRY_AMOUNT = "entry_amount"
    BALANCE_IS_NOT_THE_SUM = "balance_is_not_the_sum"
    BALANCE_IS_NOT_THE_LAST = "balance_is_not_the_last"
    ACCOUNT_VERSION = "account_version"
    TEAM_WITHOUT_ACCOUNT = "team_without_account"
    ACCOUNT_WITHOUT_TEAM = "account_without_team"
    LEDGER_WITHOUT_ACCOUNT = "ledger_without_account"
    TEAM_USAGE = "team_usage"
    ENTRY_IS_NOT_ITS_CHARGES = "entry_is_not_its_charges"
    CHARGE_OF_NO_USAGE_DEBIT = "charge_of_no_usage_debit"
    CHARGE_WITHOUT_ENTRY = "charge_without_entry"
    CHARGE_OF_ANOTHER_TEAMS_ENTRY = "charge_of_another_teams_entry"
    RECORD_WITHOUT_CHARGE = "record_without_charge"
    CHARGE_WITHOUT_RECORD = "charge_without_record"
    CHARGE_OF_UNSETTLED_RECORD = "charge_of_unsettled_record"
    CHARGE_WITHOUT_USAGE = "charge_without_usage"
    CHARGE_AMOUNT = "charge_amount"
    CHARGE_BY_ANOTHER_PRICE = "charge_by_another_price"
    CHARGE_WITHOUT_PRICE = "charge_without_price"
    PRICE_OF_ANOTHER_MODEL = "price_of_another_model"
    PRICE_NOT_IN_EFFECT = "price_not_in_effect"
    CHARGE_OF_ANOTHER_TEAM = "charge_of_another_team"
    CHARGE_WITHOUT_DEBIT = "charge_without_debit"
    USAGE_NOT_CHARGED = "usage_not_charged"
    PENDING_TOO_LONG = "pending_too_long"
    DUPLICATE_RECORD = "duplicate_record"
    DUPLICATE_CHARGE = "duplicate_charge"
    SPEND_AMOUNT = "spend_amount"
    RECORD_NOT_STORED = "record_not_stored"
    CACHED_BALANCE = "cached_balance"
    CACHED_VERSION = "cached_version"
    CACHED_WITHOUT_ACCOUNT = "cached_without_account"


SENTENCES: Mapping[Kind, str] = MappingProxyType(
    {
        Kind.LEDGER_VERSION: "An account's versions have a gap or a repetition.",
        Kind.RUNNING_BALANCE: "An entry's balance isn't the one before it ± its amount.",
        Kind.ENTRY_AMOUNT: "An entry's amount isn't a number above zero.",
        Kind.BALANCE_IS_NOT_THE_SUM: "A balance isn't Σ credits − Σ debits of its ledger.",
        Kind.BALANCE_IS_NOT_THE_LAST: "A balance isn't what the last ledger entry says.",
        Kind.ACCOUNT_VERSION: "An account's version isn't that of its last entry.",
        Kind.TEAM_WITHOUT_ACCOUNT: "A team has no account.",
        Kind.ACCOUNT_WITHOUT_TEAM: "An account has no team.",
        Kind.LEDGER_WITHOUT_ACCOUNT: "Ledger entries have no account.",
        Kind.TEAM_USAGE: "A team's Σ usage debits isn't its Σ charges.",
        Kind.ENTRY_IS_NOT_ITS_CHARGES: "A usage debit isn't the sum of its charges.",
        Kind.CHARGE_OF_NO_USAGE_DEBIT: "Charges name an entry that is no usage debit.",
        Kind.CHARGE_WITHOUT_ENTRY: "Charges name a ledger entry that isn't there.",
        Kind.CHARGE_OF_ANOTHER_TEAMS_ENTRY: "A charge names another team's ledger entry.",
        Kind.RECORD_WITHOUT_CHARGE: "A settled record has no charge.",
        Kind.CHARGE_WITHOUT_RECORD: "A charge has no record.",
        Kind.CHARGE_OF_UNSETTLED_RECORD: "A record that isn't settled has a charge.",
        Kind.CHARGE_WITHOUT_USAGE: "A record whose usage is unknown was charged.",
        Kind.CHARGE_AMOUNT: "A charge isn't exactly tokens × pinned price.",
        Kind.CHARGE_BY_ANOTHER_PRICE: "A charge was made by another price than the pinned one.",
        Kind.CHARGE_WITHOUT_PRICE: "A charge's price version isn't there.",
        Kind.PRICE_OF_ANOTHER_MODEL: "A charge's price is of another provider or model.",
        Kind.PRICE_NOT_IN_EFFECT: "A price was pinned before it took effect.",
        Kind.CHARGE_OF_ANOTHER_TEAM: "A charge is another team's than its record.",
        Kind.CHARGE_WITHOUT_DEBIT: "A charge above zero was never debited.",
        Kind.USAGE_NOT_CHARGED: "A record has usage and yet counts as unbillable.",
        Kind.PENDING_TOO_LONG: "A record has waited too long for its charge.",
        Kind.DUPLICATE_RECORD: "An attempt has several records.",
        Kind.DUPLICATE_CHARGE: "A record has several charges.",
        Kind.SPEND_AMOUNT: "What is kept as spent in a period isn't the sum of its charges.",
        Kind.RECORD_NOT_STORED: "An acknowledged message is neither stored nor a dead letter.",
        Kind.CACHED_BALANCE: "A cached balance differs, and nothing is pending.",
        Kind.CACHED_VERSION: "A cached balance has a version that the account never had.",
        Kind.CACHED_WITHOUT_ACCOUNT: "A balance is cached of a team without an account.",
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `due` is what it should be; amounts are exact decimals of USD."""

    kind: Kind
    team_id: str | None
    subject: str
    due: str
    found: str


@dataclass(slots=True)
class Report:
    """What was looked at, what was found, and what could not be told.

    Every finding is counted; of each kind the first `listed` are kept.
    """

    listed: int
    figures: dict[str, int | str] = field(default_factory=dict)
    counts: Counter[Kind] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    """Why something could not be looked at: then nothing of the kind is proved."""
    notes: list[str] = field(default_factory=list)
    """What isn't wrong, but worth knowing."""

    def add(self, finding: Finding) -> None:
        """Count a finding, and keep it if it is among the first of its kind."""
        if self.counts[finding.kind] < self.listed:
            self.findings.append(finding)
        self.counts[finding.kind] += 1
