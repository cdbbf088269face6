"""What a provider said about an attempt's usage, and how far it can be believed."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from contracts.inference import UsageSource
from contracts.usage import Usage

ABSURD_TOKENS = 10**9
"""More tokens in one class than any call uses: a person judges them, no limit and no balance."""

_MAX_REPORTED_CHARS = 16_384
_MAX_RECORDED_TOKENS = 2**53
# What a stream may have remembered of its usage; real usage objects have twenty fields.
_MAX_PART_BYTES = 65_536
_MAX_FIELDS = 128

_NULL = b"null"
_Fields = dict[str, msgspec.Raw]
_fields = msgspec.json.Decoder(_Fields)


class Verdict(StrEnum):
    """How far what was reported can be used."""

    FOUND = "found"
    MISSING = "missing"
    """Nothing was reported: unknown spend, never zero."""
    UNREADABLE = "unreadable"
    """Something was reported, but not counts of tokens."""
    ABSURD = "absurd"
    """Counts, but beyond what one call can use."""


@dataclass(frozen=True, slots=True)
class UsageReading:
    """The usage of one attempt."""

    verdict: Verdict
    usage: Usage | None = None
    reported: str | None = None
    """The provider's own words, as JSON."""

    @property
    def chargeable(self) -> Usage | None:
        """What the token limit and the balance may be charged with now."""
        return self.usage if self.verdict is Verdict.FOUND else None

    @property
    def source(self) -> UsageSource:
        """Where the record says its usage comes from."""
        return UsageSource.MISSING if self.usage is None else UsageSource.PROVIDER


NO_USAGE = UsageReading(Verdict.MISSING)


def reading(usage: Usage | None, reported: bytes) -> UsageReading:
    """Judge what was reported; `usage` None: it couldn't be read as counts."""
    words = reported.decode("utf-8", "replace")[:_MAX_REPORTED_CHARS]
    if usage is None:
        return UsageReading(Verdict.UNREADABLE, reported=words)
    most = max(
        usage.input,
        usage.cache_read,
        usage.cache_write_5m,
        usage.cache_write_1h,
        usage.output,
        usage.reasoning,
    )
    if most > ABSURD_TOKENS:
        kept = usage if most <= _MAX_RECORDED_TOKENS else None
        return UsageReading(Verdict.ABSURD, usage=kept, reported=words)
    return UsageReading(Verdict.FOUND, usage=usage, reported=words)


class ReportedParts:
    """Usage as a stream reports it, at once or in parts.

    Of each field, also of those within details, the last value that isn't null counts. Nothing is
    added up: parts are states, not increments.
    """

    def __init__(self) -> None:
        self._told: _Fields = {}
        self._strange: bytes | None = None

    def add(self, part: msgspec.Raw | None) -> bool:
        """Remember a `usage` member; return whether it was there and not null."""
        raw = _NULL if part is None else bytes(part)
        if raw == _NULL:
            return False
        fields = _fields_of(raw)
        if fields:
            self._told = _merged(self._told, fields)
        else:
            self._strange = raw[:_MAX_PART_BYTES]
        return True

    def read_by(self, read: Callable[[bytes], UsageReading]) -> UsageReading:
        """Return what was reported, as an API's reader of usage objects reads it."""
        if self._told:
            return read(msgspec.json.encode(self._told))
        return NO_USAGE if self._strange is None else read(self._strange)


def _fields_of(raw: bytes) -> _Fields:
    """Return the fields of a usage object; none where it isn't one."""
    if len(raw) > _MAX_PART_BYTES:
        return {}
    try:
        return _fields.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {}


def _merged(known: _Fields, told: _Fields) -> _Fields:
    merged = dict(known)
    for name, value in told.items():
        raw = bytes(value)
        if raw == _NULL or (name not in merged and len(merged) >= _MAX_FIELDS):
            continue
        before = _fields_of(bytes(merged[name])) if raw[:1] == b"{" and name in merged else {}
        details = {part: more for part, more in _fields_of(raw).items() if bytes(more) != _NULL}
        merged[name] = msgspec.Raw(msgspec.json.encode(before | details) if before else raw)
    return merged
