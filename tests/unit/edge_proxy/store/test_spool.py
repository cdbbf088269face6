"""Records that wait for the stream survive, whole, and never stand in each other's way."""

from pathlib import Path

import pytest
from unit.edge_proxy.records import record
from unit.edge_proxy.store.children import killed_while_writing

from contracts.contract import encode
from edge_proxy.errors import DataDirectoryError
from edge_proxy.store.spool import Spool

WRITER = """
import sys
from pathlib import Path
from contracts.contract import encode
from contracts.inference import InferenceRecord, Outcome, UsageSource
from edge_proxy.store.spool import Spool

spool = Spool(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    record = InferenceRecord(
        inference_id=f"{number:08}", attempt_no=1, team_id="team", api_key_id="key",
        provider="fake", model_asked="m", outcome=Outcome.UNKNOWN,
        usage_source=UsageSource.MISSING, started_at_us=1, usage_reported="x" * 20_000,
    )
    spool.keep(record.message_id, encode(record))
    print(record.message_id, flush=True)
"""


def drain(spool: Spool) -> list[str]:
    ids = []
    while (oldest := spool.oldest()) is not None:
        name, found = oldest
        ids.append(found.message_id)
        spool.remove(name)
    return ids


def keep(spool: Spool, inference_id: str, attempt_no: int = 1) -> None:
    kept = record(inference_id, attempt_no)
    spool.keep(kept.message_id, encode(kept))


def test_oldest_first_and_gone_when_removed(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for inference_id in ("a", "b", "c"):
        keep(spool, inference_id)
    keep(spool, "b")
    assert spool.depth == 3
    assert "b:1" in spool
    assert drain(spool) == ["a:1", "b:1", "c:1"]
    assert (spool.depth, list(tmp_path.iterdir())) == (0, [])


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    keep(Spool(tmp_path), "b", 2)
    keep(Spool(tmp_path), "a", 10)
    assert drain(Spool(tmp_path)) == ["a:10", "b:2"]


def test_a_killed_process_loses_nothing_it_promised(tmp_path: Path) -> None:
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        promised = killed_while_writing(WRITER, folder, until_lines=10 + attempt)
        found = drain(Spool(folder))
        # One more may have been complete without having been promised.
        assert found[: len(promised)] == promised
        assert len(found) - len(promised) <= 1
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        pytest.param(encode(record("a")), ["a:1"], id="only the name was missing"),
        pytest.param(encode(record("a"))[:-1], [], id="cut off"),
        pytest.param(b"", [], id="empty"),
    ],
)
def test_an_unfinished_file(tmp_path: Path, content: bytes, kept: list[str]) -> None:
    (tmp_path / "a_1.json.unfinished").write_bytes(content)
    assert drain(Spool(tmp_path)) == kept
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"inference_id":"a"}'])
def test_a_file_that_is_no_record_is_set_aside(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a_1.json").write_bytes(content)
    spool = Spool(tmp_path)
    keep(spool, "b")
    assert drain(spool) == ["b:1"]
    assert [file.name for file in tmp_path.iterdir()] == ["a_1.json.unreadable"]
    assert Spool(tmp_path).depth == 0


def test_names_stay_inside(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    (tmp_path / "spool").mkdir()
    keep(spool, "../../x")
    assert [file.name for file in tmp_path.iterdir()] == ["spool"]
    assert drain(spool) == ["../../x:1"]


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "nowhere")
    with pytest.raises(DataDirectoryError, match="spool: No such file"):
        keep(spool, "a")
    assert spool.depth == 0


def test_taking_over(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    ours, theirs = Spool(tmp_path / "ours"), Spool(tmp_path / "theirs")
    keep(ours, "b")
    keep(theirs, "a")
    keep(theirs, "b")
    ours.take_over(Spool(tmp_path / "theirs"))
    assert sorted(drain(ours)) == ["a:1", "b:1"]
    assert list((tmp_path / "theirs").iterdir()) == []
