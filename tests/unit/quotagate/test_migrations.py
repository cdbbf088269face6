"""Every revision says when it runs, and stands in one line with the others."""

import ast

import pytest
from alembic.config import Config
from alembic.script import Script, ScriptDirectory

from quotagate.sql_scripts import migrations_folder


def _revisions() -> list[Script]:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    return list(ScriptDirectory.from_config(config).walk_revisions())


@pytest.mark.parametrize("script", [pytest.param(s, id=s.revision) for s in _revisions()])
def test_a_revision_says_whether_it_runs_before_or_after_the_code(script: Script) -> None:
    assert script.module.run in {"before", "after"}
    assert (script.doc or "").endswith(".")


@pytest.mark.parametrize("script", [pytest.param(s, id=s.revision) for s in _revisions()])
def test_a_revision_runs_every_script_of_its_folder(script: Script) -> None:
    source = ast.parse((migrations_folder() / "versions" / f"{script.revision}.py").read_text())
    words = {node.value for node in ast.walk(source) if isinstance(node, ast.Constant)}
    scripts = {path.stem for path in (migrations_folder() / "sql" / script.revision).glob("*")}
    assert scripts <= words


def test_revisions_form_one_line() -> None:
    revisions = _revisions()
    assert sum(script.is_head for script in revisions) == 1
    assert sum(script.is_base for script in revisions) == 1
    assert not any(script.is_branch_point or script.is_merge_point for script in revisions)


def test_every_script_belongs_to_a_revision() -> None:
    folders = {path.name for path in (migrations_folder() / "sql").iterdir()}
    assert folders <= {script.revision for script in _revisions()}
