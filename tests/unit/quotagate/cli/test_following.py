"""Following logs: whole lines, also when a file begins anew."""

from pathlib import Path

import pytest

from quotagate.cli.following import follow


class _OverError(Exception):
    """Nothing more will happen."""


def _lines(path: Path, steps: list[bytes | None]) -> list[str]:
    """Return what is followed while the steps happen; None begins the file anew."""
    pending = iter(steps)

    def happen() -> None:
        for step in pending:
            if step is None:
                path.rename(path.with_suffix(".1"))
                path.touch()
            else:
                with path.open("ab") as file:
                    file.write(step)
            return
        raise _OverError

    followed = follow({"x": path}, happen)
    seen = []
    while True:
        try:
            seen.append(next(followed)[1])
        except _OverError:
            return seen


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([b"one\n", b"two\nthree\n"], ["one", "two", "three"], id="whole lines"),
        pytest.param([b"on", b"e\ntw", b"o\n"], ["one", "two"], id="lines in pieces"),
        pytest.param([b"one\n", None, b"two\n"], ["one", "two"], id="a file that begins anew"),
        pytest.param([b"\xff\n"], ["\ufffd"], id="bytes that are no text"),
    ],
)
def test_lines_come_out_once(
    tmp_path: Path,
    steps: list[bytes | None],
    expected: list[str],
) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"before\n")
    assert _lines(path, steps) == expected
