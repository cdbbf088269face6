"""The load generator knows where an answer ends, however it is cut into pieces."""

import pytest
from bench.answers import Answer

SIZED = b'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 7\r\n\r\n{"a":1}'
STREAM = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"b\r\ndata: one\n\n\r\nb\r\ndata: two\n\n\r\n0\r\n\r\n"
)
CLOSING = b"HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize(
    ("sent", "status", "frames"),
    [
        pytest.param(SIZED, 503, 0, id="a body with a length"),
        pytest.param(STREAM, 200, 2, id="a stream of two events"),
        pytest.param(CLOSING, 401, 0, id="no body"),
    ],
)
def test_it_is_whole_at_its_last_byte_and_not_before(
    sent: bytes, status: int, frames: int, piece_bytes: int
) -> None:
    answer = Answer()
    for at in range(0, len(sent), piece_bytes):
        assert not answer.whole
        answer.feed(sent[at : at + piece_bytes])
    assert answer.whole
    assert (answer.status, answer.frames) == (status, frames)
    assert answer.closes == (sent is CLOSING)
