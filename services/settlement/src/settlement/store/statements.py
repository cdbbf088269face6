"""The SQL of this package, each statement in its own file under sql/."""

from pathlib import Path

from sqlalchemy import TextClause, text

_FOLDER = Path(__file__).parent / "sql"


def statement(name: str) -> TextClause:
    """Return the statement in sql/`name`.sql; `:name` stands for a parameter.

    Raises:
        FileNotFoundError: there is no such file.

    """
    return text((_FOLDER / f"{name}.sql").read_text(encoding="utf-8"))
