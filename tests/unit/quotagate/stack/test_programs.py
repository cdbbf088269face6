"""The supervisor's configuration, read back by the supervisor's own parser."""

import os
from pathlib import Path

import pytest
from supervisor.options import ServerOptions

from quotagate.stack.errors import StackError
from quotagate.stack.programs import Program, configuration, supervisor_environment

HOSTILE = '/a b/100%/it\'s "q" # no ; comment/%(x)s/server'


def _read_back(
    programs: list[Program], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, object]:
    """Return what the supervisor understands: its program configurations by name."""
    (folder / "logs").mkdir()
    (folder / "supervisor.conf").write_text(configuration(programs, 9001, "secret", root=False))
    monkeypatch.chdir(folder)
    for name, value in supervisor_environment(programs, "mark").items():
        monkeypatch.setitem(os.environ, name, value)
    options = ServerOptions()
    options.configfile = "supervisor.conf"
    options.process_config(do_usage=False)
    return {
        process.name: process
        for group in options.process_group_configs
        for process in group.process_configs
    }


def test_a_command_arrives_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shlex

    program = Program("nats", (HOSTILE, "--config", HOSTILE + " 2"), server=True)
    read = _read_back([program], tmp_path, monkeypatch)["nats"]
    assert shlex.split(getattr(read, "command", "")) == list(program.command)


def test_variables_arrive_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"QUOTAGATE_PORT": "8080", "QUOTAGATE_REDIS_URL": "redis://a:b_c-d@127.0.0.1:1/0"}
    program = Program("edge-proxy", ("python",), environment=variables)
    read = _read_back([program], tmp_path, monkeypatch)["edge-proxy"]
    assert getattr(read, "environment", None) == variables


@pytest.mark.parametrize("value", ["a;b", "a#b", "50%", 'a"b', "a'b", "a\nb", "a\\b"])
def test_a_value_that_the_format_would_bend_is_refused(value: str) -> None:
    program = Program("admission", ("python",), environment={"QUOTAGATE_X": value})
    with pytest.raises(StackError, match="QUOTAGATE_X"):
        configuration([program], 9001, "secret", root=False)
