"""A change as the event that will tell everyone about it."""

from dataclasses import dataclass

from contracts.contract import Event, MessageT, encode


@dataclass(frozen=True, slots=True)
class Change:
    """What goes into the outbox, in the transaction that made it true."""

    subject: str
    payload: bytes


def change(event: Event[MessageT], message: MessageT, token: str | None = None) -> Change:
    """Return a change; `token` is the id of the team, tier or key that the subject names."""
    return Change(subject=event.subject_for(token), payload=encode(message))
