"""Spools records in a folder without end, and names each on stdout once it is kept.

    python -m faults.power_cut.spooler FOLDER [--unsynced]

With `--unsynced` nothing is ever synced: the bug that a power cut must bring to light.
"""

import os
import sys
from pathlib import Path

from contracts.contract import encode
from contracts.inference import InferenceRecord, Outcome, UsageSource
from edge_proxy.store.spool import Spool


def record(number: int) -> InferenceRecord:
    """Return the record of this number."""
    return InferenceRecord(
        inference_id=f"inference-{number:08}",
        attempt_no=1,
        team_id="team",
        api_key_id="key",
        provider="fake",
        model_asked="small",
        outcome=Outcome.SUCCEEDED,
        usage_source=UsageSource.MISSING,
        started_at_us=1,
    )


def main() -> None:
    """Spool until killed."""
    folder = Path(sys.argv[1])
    if "--unsynced" in sys.argv[2:]:
        os.fsync = lambda fd: None
    folder.mkdir(exist_ok=True)
    spool = Spool(folder)
    number = 0
    while True:
        number += 1
        each = record(number)
        spool.keep(each.message_id, encode(each))
        sys.stdout.write(f"{each.message_id}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
