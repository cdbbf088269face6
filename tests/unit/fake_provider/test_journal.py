"""The journal itself: its ring, its filters, its file."""

import json
from pathlib import Path

import pytest

from fake_provider.domain.usage import Usage
from fake_provider.journal import Entry, Filter, Journal, Outcome

_HEADERS = [(b"x-trace", b"a:b"), (b"host", b"h")]


def _seen(journal: Journal, marker: str = "", outcome: Outcome = "completed") -> Entry:
    seq = journal.next_seq()
    entry = Entry(
        seq=seq,
        request_id=f"req_{seq}",
        method="POST",
        path="/v1/chat/completions",
        received_at_us=seq,
        marker=marker,
        usage=Usage(prompt_tokens=seq),
        status=200,
    )
    journal.begin(entry, _HEADERS)
    if outcome != "in_flight":
        journal.finish(entry, outcome)
    return entry


def test_headers_come_back_as_they_were() -> None:
    journal = Journal(capacity=2)
    _seen(journal)

    assert journal.find(Filter(), 1)[0]["headers"] == [("x-trace", "a:b"), ("host", "h")]


@pytest.mark.parametrize(
    ("wanted", "seqs"),
    [
        pytest.param(Filter(), [1, 2, 3, 4], id="all"),
        pytest.param(Filter(marker="a"), [1, 3], id="a marker, not one that contains it"),
        pytest.param(Filter(marker="a", outcome="in_flight"), [3], id="still in flight"),
        pytest.param(Filter(path="/v1/embeddings"), [], id="another path"),
        pytest.param(Filter(outcome="dropped"), [4], id="an outcome"),
    ],
)
def test_filters(wanted: Filter, seqs: list[int]) -> None:
    journal = Journal(capacity=10)
    _seen(journal, "a")
    _seen(journal, "ab")
    _seen(journal, "a", "in_flight")
    _seen(journal, "", "dropped")

    assert [entry["seq"] for entry in journal.find(wanted, 10)] == seqs
    assert journal.counts(wanted)["requests"] == len(seqs)


def test_limit_means_the_latest() -> None:
    journal = Journal(capacity=10)
    for _ in range(4):
        _seen(journal)

    assert [entry["seq"] for entry in journal.find(Filter(), 2)] == [3, 4]
    assert journal.find(Filter(), 0) == []


def test_what_ends_after_the_journal_was_cleared_is_forgotten() -> None:
    journal = Journal(capacity=10)
    entry = _seen(journal, outcome="in_flight")
    journal.clear()
    journal.finish(entry, "completed")

    assert journal.find(Filter(), 10) == []


def test_the_file_is_read_again_whatever_cut_it_off(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(10, path)
    _seen(journal, "done")
    _seen(journal, "stopped", "in_flight")
    journal.close()
    with path.open("a", encoding="utf-8") as file:
        file.write('{"seq": 3, "marker": "half a li')

    again = Journal(10, path)
    found = again.find(Filter(), 10)
    assert [(entry["marker"], entry["outcome"]) for entry in found] == [
        ("done", "completed"),
        ("stopped", "cut"),
    ]
    assert found[0]["usage"] == Usage(prompt_tokens=1)
    assert _seen(again, "after the kill").seq == 3
    again.close()
    once_more = Journal(10, path)
    markers = [entry["marker"] for entry in once_more.find(Filter(), 10)]
    once_more.close()
    assert markers == ["done", "stopped", "after the kill"]


def test_every_line_of_the_file_is_an_entry(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(10, path)
    _seen(journal, "one")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    journal.close()

    assert [line["outcome"] for line in lines] == ["in_flight", "completed"]
    assert {line["marker"] for line in lines} == {"one"}
