"""What a process takes over from those that died: their spools, and attempts they had begun."""

from pathlib import Path

from contracts.contract import encode
from edge_proxy.store.claim import Claim, claim_orphans
from edge_proxy.store.journal import left_open
from edge_proxy.store.spool import Spool
from kit.crashpoint import crash_at


def take_over_orphans(data_dir: Path, spool: Spool) -> int:
    """Put everything that dead processes left into `spool`; return how many of them there were.

    Each step may be repeated after a crash: a record keeps its id, and its file its name. A record
    in a spool says more than the journal's, so the journal's is dropped.

    Raises:
        DataDirectoryError: the data directory can't be read or written.

    """
    orphans = claim_orphans(data_dir)
    for orphan in orphans:
        _take_over(orphan, spool)
    return len(orphans)


def _take_over(orphan: Claim, spool: Spool) -> None:
    spool.take_over(orphan.spool)
    for unknown in left_open(orphan.journal):
        if unknown.message_id not in spool:
            spool.keep(unknown.message_id, encode(unknown))
    crash_at("edge.inherited")
    orphan.remove()
