"""What a stack remembers."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from quotagate.stack import state
from quotagate.stack.errors import StackError
from quotagate.stack.state import State


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    before = replace(State.new(), ports={"nats": 1}, postgres_home="/somewhere")
    state.save(tmp_path, before)
    assert state.load(tmp_path) == before


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    state.save(tmp_path, State.new())
    assert [path.name for path in tmp_path.iterdir()] == [state.FILE]
    assert stat.S_IMODE((tmp_path / state.FILE).stat().st_mode) == 0o600


def test_two_stacks_share_no_secret() -> None:
    one, other = State.new().credentials, State.new().credentials
    assert not set(one.nats.values()) & set(other.nats.values())
    assert one.admin_token != other.admin_token
    assert one.key_pepper != other.key_pepper


def test_there_is_none_in_an_empty_folder(tmp_path: Path) -> None:
    assert state.load(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="cut off"),
        pytest.param("[]", id="another shape"),
        pytest.param('{"credentials": {}}', id="fields missing"),
        pytest.param('{"mark": "m", "credentials": 3}', id="wrong type"),
    ],
)
def test_a_damaged_one_is_an_error_with_its_path(tmp_path: Path, text: str) -> None:
    (tmp_path / state.FILE).write_text(text)
    with pytest.raises(StackError, match="damaged"):
        state.load(tmp_path)
