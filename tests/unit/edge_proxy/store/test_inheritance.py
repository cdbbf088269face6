"""What the dead leave is published once, and a record is never outrun by its own journal."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from unit.edge_proxy.records import record

from contracts.contract import encode
from contracts.inference import InferenceRecord, Outcome
from edge_proxy.store.claim import claim_new, claim_orphans
from edge_proxy.store.inheritance import take_over
from edge_proxy.store.journal import Journal, close_left_open, left_open
from edge_proxy.store.spool import Spool

HEIR = """
import sys
from pathlib import Path
from edge_proxy.store.claim import claim_new
from edge_proxy.store.inheritance import take_over_orphans
from edge_proxy.store.spool import Spool

folder = Path(sys.argv[1])
take_over_orphans(folder, Spool(claim_new(folder).spool))
"""
SAID = record("spooled", outcome=Outcome.SUCCEEDED)


def dies_with_a_spool(folder: Path) -> None:
    """Leave what an edge leaves that is killed between its spool and its journal."""
    dead = claim_new(folder)
    journal = Journal(dead.journal)
    journal.begin(record("spooled"))
    journal.begin(record("under way"))
    Spool(dead.spool).keep(SAID.message_id, encode(SAID))
    journal.close()
    dead.release()


def dies_while_inheriting(folder: Path, crash_folder: Path, point: str) -> None:
    """Run an heir of all that is dead, and have it die on the way."""
    crash_folder.mkdir()
    (crash_folder / point).touch()
    ended = subprocess.run(  # noqa: S603 # a program of this test
        [sys.executable, "-c", HEIR, str(folder)],
        env={"QUOTAGATE_CRASH_AT": str(crash_folder)},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize("point", ["edge.inheriting", "edge.inherited"])
@pytest.mark.parametrize("step", [1, -1], ids=["the oldest first", "the newest first"])
def test_a_record_is_never_outrun(tmp_path: Path, point: str, step: int) -> None:
    """An edge died, and so did its heir, and two others find one of the two folders each."""
    folder = tmp_path / "data"
    folder.mkdir()
    dies_with_a_spool(folder)
    dies_while_inheriting(folder, tmp_path / "armed", point)
    published: list[InferenceRecord] = []
    orphans = claim_orphans(folder)
    assert len(orphans) == 2
    for number, orphan in enumerate(orphans[::step]):
        heir = tmp_path / str(number)
        heir.mkdir()
        spool = Spool(heir)
        take_over(orphan, spool)
        while (oldest := spool.oldest()) is not None:
            published.append(oldest[1])
            spool.remove(oldest[0])
    assert [one for one in published if one.message_id == SAID.message_id] == [SAID]
    # The other one may be found twice, with the same words.
    assert {one.message_id: one for one in published} == {
        SAID.message_id: SAID,
        "under way:1": record("under way"),
    }


def test_a_journal_is_closed_after_a_line_that_was_cut_off(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.begin(record("a"))
    journal.begin(record("b"))
    journal.close()
    with (tmp_path / "journal").open("ab") as file:
        file.write(b'+{"inference_id":"c')
    close_left_open(tmp_path / "journal", ["a:1"])
    assert left_open(tmp_path / "journal") == [record("b")]
