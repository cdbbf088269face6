"""Each process has a folder of its own; what a dead one leaves belongs to whoever comes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from unit.edge_proxy.records import record

from contracts.contract import encode
from edge_proxy.errors import DataDirectoryError
from edge_proxy.store.claim import Claim, claim_new, claim_orphans
from edge_proxy.store.inheritance import take_over_orphans
from edge_proxy.store.journal import Journal
from edge_proxy.store.spool import Spool


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Claim]:
    claim = claim_new(tmp_path)
    yield claim
    claim.release()


def test_the_living_are_left_alone(tmp_path: Path, ours: Claim) -> None:
    assert claim_orphans(tmp_path) == []
    assert ours.path.parent == tmp_path


def test_the_dead_are_claimed_once(tmp_path: Path, ours: Claim) -> None:
    dead = claim_new(tmp_path)
    dead.release()
    (found,) = claim_orphans(tmp_path)
    assert found.path == dead.path
    assert claim_orphans(tmp_path) == []
    found.remove()
    assert [path.name for path in tmp_path.iterdir()] == [ours.path.name]


@pytest.mark.parametrize("name", [".newborn", "a-file", "without-a-lock"])
def test_what_else_lies_there_is_left_alone(tmp_path: Path, name: str) -> None:
    if name == "a-file":
        (tmp_path / name).write_text("x")
    else:
        (tmp_path / name).mkdir()
    if name == ".newborn":
        (tmp_path / name / "lock").touch()
    assert claim_orphans(tmp_path) == []
    assert (tmp_path / name).exists()


def test_everything_left_is_taken_over(tmp_path: Path, ours: Claim) -> None:
    dead = claim_new(tmp_path)
    spool, journal = Spool(dead.spool), Journal(dead.journal)
    for inference_id in ("acknowledged", "spooled", "under way"):
        journal.begin(record(inference_id))
    journal.end("acknowledged:1")
    spooled = encode(record("spooled", team_id="says-more"))
    spool.keep("spooled:1", spooled)
    journal.close()
    dead.release()

    into = Spool(ours.spool)
    assert take_over_orphans(tmp_path, into) == 1
    found = {}
    while (oldest := into.oldest()) is not None:
        found[oldest[1].message_id] = oldest[1]
        into.remove(oldest[0])
    assert found == {
        "spooled:1": record("spooled", team_id="says-more"),
        "under way:1": record("under way"),
    }
    assert [path.name for path in tmp_path.iterdir()] == [ours.path.name]
    assert take_over_orphans(tmp_path, into) == 0


def test_a_data_directory_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataDirectoryError, match="data directory: Not a directory"):
        claim_new(tmp_path / "file")
    with pytest.raises(DataDirectoryError, match="data directory: "):
        claim_orphans(tmp_path / "nowhere")
