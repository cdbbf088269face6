"""What was dispatched and has no end is known after any death."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.edge_proxy.records import record
from unit.edge_proxy.store.children import killed_while_writing

from edge_proxy.errors import DataDirectoryError
from edge_proxy.store.journal import Journal, left_open

WRITER = """
import sys
from pathlib import Path
from contracts.inference import InferenceRecord, Outcome, UsageSource
from edge_proxy.store.journal import Journal

journal = Journal(Path(sys.argv[1]) / "journal", compact_at_bytes=20_000)
number = 0
while True:
    number += 1
    record = InferenceRecord(
        inference_id=f"{number:08}", attempt_no=1, team_id="team", api_key_id="key",
        provider="fake", model_asked="m", outcome=Outcome.UNKNOWN,
        usage_source=UsageSource.MISSING, started_at_us=1,
    )
    journal.begin(record)
    print("+" + record.message_id, flush=True)
    if number > 3:
        journal.end(f"{number - 3:08}:1")
        print(f"-{number - 3:08}:1", flush=True)
"""


def open_ids(path: Path) -> list[str]:
    return [left.message_id for left in left_open(path)]


def test_begun_and_ended(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    for inference_id in ("a", "b", "c"):
        journal.begin(record(inference_id))
    journal.end("b:1")
    assert left_open(tmp_path / "journal") == [record("a"), record("c")]
    assert journal.under_way == 2
    journal.close()


def test_no_file_means_nothing_was_begun(tmp_path: Path) -> None:
    assert left_open(tmp_path / "journal") == []


def test_a_new_journal_begins_empty(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.begin(record("a"))
    journal.close()
    Journal(tmp_path / "journal").close()
    assert left_open(tmp_path / "journal") == []


@given(steps=st.lists(st.integers(min_value=0, max_value=5), max_size=60))
def test_compaction_forgets_only_what_has_ended(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal"
    journal = Journal(path, compact_at_bytes=700)
    begun: set[str] = set()
    for step in steps:
        message_id = f"{step}:1"
        if message_id in begun:
            journal.end(message_id)
            begun.remove(message_id)
        else:
            journal.begin(record(str(step)))
            begun.add(message_id)
        assert set(open_ids(path)) == begun
    journal.close()


def test_the_file_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, compact_at_bytes=10_000)
    journal.begin(record("stays"))
    for number in range(1_000):
        journal.begin(record(str(number)))
        journal.end(f"{number}:1")
        assert path.stat().st_size < 11_000
    assert open_ids(path) == ["stays:1"]
    journal.end("stays:1")
    journal.close()


def test_a_killed_process_leaves_exactly_what_is_open(tmp_path: Path) -> None:
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        said = killed_while_writing(WRITER, folder, until_lines=300 + attempt)
        begun = [line[1:] for line in said if line.startswith("+")]
        ended = [line[1:] for line in said if line.startswith("-")]
        found = open_ids(folder / "journal")
        expected = begun[len(ended) :]
        # The step after the last one that was said may have been taken, too.
        assert found in (expected, expected[1:], [*expected, f"{len(begun) + 1:08}:1"])


@pytest.mark.parametrize("cut_bytes", [1, 5, 100])
def test_a_line_cut_by_a_full_disk_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_bytes: int
) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.begin(record("a"))

    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, line: write(fd, line[:cut_bytes]))
        with pytest.raises(DataDirectoryError):
            journal.begin(record("b"))
    journal.begin(record("c"))
    assert open_ids(path) == ["a:1", "c:1"]
    journal.close()


@pytest.mark.parametrize("cut_bytes", [0, 5, 100])
def test_a_compaction_cut_by_a_full_disk_forgets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_bytes: int
) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, compact_at_bytes=1)
    journal.begin(record("a"))
    journal.begin(record("b"))
    journal.begin(record("c"))

    write = os.write

    def write_lines_whole(descriptor: int, content: bytes) -> int:
        return write(descriptor, content if content.count(b"\n") == 1 else content[:cut_bytes])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_lines_whole)
        with pytest.raises(DataDirectoryError):
            journal.end("a:1")
    assert open_ids(path) == ["b:1", "c:1"]

    journal.end("b:1")
    assert open_ids(path) == ["c:1"]
    journal.close()
