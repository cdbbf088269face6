"""What clients were told, held against what is recorded."""

from collections.abc import Iterator

from faults.evidence import Request, Told
from faults.rules.index import Index
from faults.rules.rule import Rule, Violation

_REVOKED_WITHIN_US = 1_000_000
# How long after a fault was healed a connection may still be on its way back.
_AFTERMATH_US = 5_000_000


def _name(request: Request) -> str:
    return f"{request.marker} of {request.team_id}"


def _completed(index: Index) -> Iterator[Request]:
    return (request for request in index.evidence.requests if request.told is Told.COMPLETE)


def successes_are_recorded_and_charged(index: Index) -> Iterator[Violation]:
    """Every acknowledged success has one record and, if the provider told usage, one charge."""
    for request in _completed(index):
        if not index.served.get(request.marker):
            yield Violation(Rule.SUCCESS_OF_NOBODY, _name(request), f"status {request.status}")
        records = index.succeeded(request)
        if len(records) != 1:
            told = f"{len(records)} records of inference {request.inference_id} say it succeeded"
            yield Violation(Rule.SUCCESS_NOT_RECORDED, _name(request), told)
            continue
        charges = len(index.charges.get(records[0].record_id, ()))
        if charges != (request.usage is not None):
            told = f"record {records[0].record_id} ({records[0].state}) has {charges} charges"
            rule = Rule.CHARGED_TWICE if charges > 1 else Rule.SUCCESS_NOT_CHARGED
            yield Violation(rule, _name(request), told)


def successes_were_durable_when_told(index: Index) -> Iterator[Violation]:
    """The stream had the record before the client heard of success."""
    for request in _completed(index):
        for record in index.succeeded(request):
            message_id = f"{record.inference_id}:{record.attempt_no}"
            published_at_us = index.evidence.published_at_us.get(message_id)
            if published_at_us is None:
                told = f"the stream has no record; {record.stream_sequence} was it once"
                yield Violation(Rule.TOLD_TOO_EARLY, _name(request), told)
            elif published_at_us > request.told_at_us:
                early_us = published_at_us - request.told_at_us
                yield Violation(
                    Rule.TOLD_TOO_EARLY, _name(request), f"{early_us} µs before the record"
                )


def refused_reached_nobody(index: Index) -> Iterator[Violation]:
    """What was refused was not sent to a provider."""
    for request in index.evidence.requests:
        if request.told is Told.REFUSED and index.served.get(request.marker):
            told = f"{request.status} {request.reason}"
            yield Violation(Rule.REFUSED_BUT_SERVED, _name(request), told)


def revoked_keys_stay_outside(index: Index) -> Iterator[Violation]:
    """A revoked key does nothing a second later, as long as nothing is broken meanwhile."""
    told_at_us = {each.key_id: each.told_at_us for each in index.evidence.revocations}
    windows = index.evidence.windows
    for request in index.evidence.requests:
        revoked_at_us = told_at_us.get(request.key_id)
        if revoked_at_us is None or request.sent_at_us < revoked_at_us + _REVOKED_WITHIN_US:
            continue
        troubled = any(
            window.start_us < request.sent_at_us and window.end_us + _AFTERMATH_US > revoked_at_us
            for window in windows
        )
        if not troubled and (request.told is Told.COMPLETE or index.served.get(request.marker)):
            late_us = request.sent_at_us - revoked_at_us
            yield Violation(
                Rule.REVOKED_KEY_ACCEPTED, _name(request), f"{late_us} µs after {request.key_id}"
            )
