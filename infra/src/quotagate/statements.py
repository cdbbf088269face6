"""The SQL of the operator's commands, each statement in its own file beside its package."""

from pathlib import Path

from sqlalchemy import TextClause, text


def statement(folder: Path, name: str) -> TextClause:
    """Return the statement in `folder`/`name`.sql; `:name` in it stands for a parameter.

    Raises:
        FileNotFoundError: there is no such file.

    """
    return text((folder / f"{name}.sql").read_text(encoding="utf-8"))
