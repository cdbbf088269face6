"""What a process takes over from those that died: their spools, and attempts they had begun."""

from pathlib import Path

from contracts.contract import encode
from edge_proxy.errors import DataDirectoryError
from edge_proxy.store.claim import Claim, claim_orphans
from edge_proxy.store.journal import close_left_open, left_open
from edge_proxy.store.spool import Spool
from kit.crashpoint import crash_at


def take_over_orphans(data_dir: Path, spool: Spool) -> int:
    """Put everything that dead processes left into `spool`; return how many of them there were.

    Each step may be repeated after a crash: a record keeps its id, and its file its name. A record
    in a spool says more than the journal's, and of two with one id only the first to be published
    counts. So the journal's is closed before the other is moved: should this heir die as well, its
    spool and the journal may be found by two others, in any order.

    Raises:
        DataDirectoryError: the data directory can't be read or written.

    """
    orphans = claim_orphans(data_dir)
    for orphan in orphans:
        take_over(orphan, spool)
    return len(orphans)


def take_over(orphan: Claim, spool: Spool) -> None:
    """Put what one dead process left into `spool`, and remove its folder.

    Raises:
        DataDirectoryError: it can't be read or written.

    """
    theirs = Spool(orphan.spool)
    unknowns = {unknown.message_id: unknown for unknown in left_open(orphan.journal)}
    spooled = [message_id for message_id in unknowns if message_id in theirs]
    if spooled:
        _close(orphan, spooled)
    crash_at("edge.inheriting")
    spool.take_over(theirs)
    for message_id, unknown in unknowns.items():
        if message_id not in spool:
            spool.keep(message_id, encode(unknown))
    crash_at("edge.inherited")
    orphan.remove()


def _close(orphan: Claim, message_ids: list[str]) -> None:
    try:
        close_left_open(orphan.journal, message_ids)
    except OSError as error:
        raise DataDirectoryError(f"journal: {error.strerror}") from error
