"""The bugs of the fault suite can still be sown: the code that they change is still there."""

import pytest
from faults.bugs import BUGS
from faults.bugs.bug import Edit
from faults.bugs.scratch import edited

_EDITS = [
    pytest.param(edit, id=f"{bug.name}, {number}")
    for bug in BUGS
    for number, edit in enumerate(bug.edits, start=1)
]


@pytest.mark.parametrize("edit", _EDITS)
def test_a_bug_can_be_sown(edit: Edit) -> None:
    text = edited(edit)
    assert edit.wrong in text
    if edit.path.endswith(".py"):
        compile(text, edit.path, "exec")
