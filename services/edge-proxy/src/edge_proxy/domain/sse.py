"""Events of a stream, cut out of bytes that arrive in pieces of any size.

A line ends with LF, CR LF or CR, an event with an empty line. Nothing else is a line's end:
U+2028, U+0085 and the like are text.
"""

import re

_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
# A blank line can reach back this far into bytes that were searched already.
_LOOK_BACK = 3


class EventBuffer:
    """Collects bytes and gives out whole events.

    An event that grows beyond `max_event_bytes` is given out in pieces, unsearched: memory stays
    bounded, and the client gets the bytes that it would have got.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self._max_event_bytes = max_event_bytes
        self._pending = bytearray()
        self._oversized = False

    @property
    def between_events(self) -> bool:
        """Whether everything given out so far is whole events, so that a comment may follow."""
        return not self._oversized

    def feed(self, chunk: bytes) -> tuple[bytes, bytes]:
        """Return bytes to pass on unsearched, and after them the events that are complete now."""
        if not self._pending and chunk.endswith(b"\n\n") and not self._oversized:
            return b"", chunk
        searched_bytes = max(0, len(self._pending) - _LOOK_BACK)
        self._pending += chunk
        unsearched = b""
        if self._oversized:
            unsearched = self._rest_of_oversized()
            searched_bytes = 0
        if self._oversized:
            return unsearched, b""
        events = self._take(_end_of_last_event(self._pending, searched_bytes))
        if not events and len(self._pending) > self._max_event_bytes:
            self._oversized = True
            unsearched += self._rest_of_oversized()
        return unsearched, events

    def rest(self) -> bytes:
        """Return what has arrived of an event that never ended."""
        return self._take(len(self._pending))

    def _rest_of_oversized(self) -> bytes:
        match = _BLANK_LINE.search(self._pending)
        if match is None:
            # What might be half of a blank line waits for its other half.
            return self._take(max(0, len(self._pending) - _LOOK_BACK))
        self._oversized = False
        return self._take(match.end())

    def _take(self, length: int) -> bytes:
        taken = bytes(self._pending[:length])
        del self._pending[:length]
        return taken


def _end_of_last_event(data: bytearray, start: int) -> int:
    """Return the index behind the last blank line that ends after `start`; 0: there is none."""
    if data.find(b"\r", start) < 0:
        return data.rfind(b"\n\n", start) + 2 if data.find(b"\n\n", start) >= 0 else 0
    end = 0
    for match in _BLANK_LINE.finditer(data, start):
        # Between CR LF and CR the LF may still come; where lines end with CR, it won't.
        if match.end() < len(data) or match[0].endswith(b"\n") or match[0] == b"\r\r":
            end = match.end()
    return end


def split(events: bytes) -> list[bytes]:
    """Cut whole events apart; joined again they are the same bytes."""
    ends = [match.end() for match in _BLANK_LINE.finditer(events)]
    if not ends or ends[-1] != len(events):
        ends.append(len(events))
    starts = [0, *ends[:-1]]
    return [events[start:end] for start, end in zip(starts, ends, strict=True)]


def data_of(event: bytes) -> bytes | None:
    """Return an event's data, its lines joined by LF; None for comments and empty events."""
    # bytes.splitlines knows LF, CR and CR LF only, unlike str.splitlines.
    lines = [line[5:].removeprefix(b" ") for line in event.splitlines() if line[:5] == b"data:"]
    return b"\n".join(lines) if lines else None
