import json
from pathlib import Path

from faults.evidence import Served
from faults.gather import served


def _line(**fields: object) -> str:
    entry = {"seq": 1, "request_id": "r", "marker": "m", "received_at_us": 5, "usage": None}
    return json.dumps(entry | {"outcome": "in_flight"} | fields) + "\n"


def test_the_last_line_of_a_request_counts_and_broken_ones_do_not(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.write_text(
        _line()
        + _line(seq=2, request_id="q")
        + _line(outcome="completed", usage={"input": 1})
        + _line(seq=3)[:20]
    )
    assert served(journal) == [
        Served(request_id="r", marker="m", received_at_us=5, outcome="completed", reported=True),
        Served(request_id="q", marker="m", received_at_us=5, outcome="cut", reported=False),
    ]
