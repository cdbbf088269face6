"""Reads an event stream the pedestrian way: lines by LF, data by prefix."""

import json
from typing import Any


def data_of(stream: bytes) -> list[str]:
    """Return the data of all events, with LF or CR LF at the ends of lines."""
    lines = stream.replace(b"\r\n", b"\n").split(b"\n")
    return [line[6:].decode() for line in lines if line.startswith(b"data: ")]


def chunks_of(stream: bytes) -> list[dict[str, Any]]:
    """Return the chunks before `[DONE]`, which must be there and be the last."""
    *chunks, done = data_of(stream)
    assert done == "[DONE]"
    return [json.loads(chunk) for chunk in chunks]


def text_of(chunks: list[dict[str, Any]]) -> str:
    """Return the text of chat chunks."""
    return "".join(
        choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]
    )
