"""The Lua files: complete in the wheel, described, and free of what loses digits."""

import hashlib
import re
import tomllib
from pathlib import Path

import pytest

import redis_scripts.scripts
import redis_scripts.spend_scripts
import redis_scripts.window_scripts
from redis_scripts.keys import team_keys
from redis_scripts.sources import Script, load

FOLDER = Path(redis_scripts.scripts.__file__).parents[1]
FILES = sorted(FOLDER.glob("*.lua"))
PARTS = sorted(FOLDER.glob("parts/*.lua"))
README = (FOLDER / "README.md").read_text(encoding="utf-8")

PART_LINE = re.compile(r"^ *-- part: (.*)$", re.MULTILINE)

every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
every_text = pytest.mark.parametrize("file", FILES + PARTS, ids=lambda file: file.stem)


def code_of(file: Path) -> str:
    """Return a script without its comments."""
    return re.sub(r"--.*", "", file.read_text(encoding="utf-8"))


def test_the_wheel_takes_every_file() -> None:
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    names = [str(file.relative_to(FOLDER)) for file in FILES + PARTS]
    assert included == {name: f"redis_scripts/{name}" for name in names}


def test_every_file_has_its_method() -> None:
    modules = (
        redis_scripts.scripts,
        redis_scripts.spend_scripts,
        redis_scripts.window_scripts,
    )
    scripts = [v for module in modules for v in vars(module).values() if isinstance(v, Script)]
    assert sorted(script.name for script in scripts) == [file.stem for file in FILES]
    for script in scripts:
        assert callable(getattr(redis_scripts.scripts.RedisScripts, script.name))


@every_file
def test_the_server_knows_a_script_by_the_hash_of_its_text(file: Path) -> None:
    script = load(file.stem)
    assert script.sha == hashlib.sha1(script.text.encode(), usedforsecurity=False).hexdigest()


@every_file
def test_a_part_stands_where_its_line_was(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for name in PART_LINE.findall(text):
        before, after = PART_LINE.split(text, maxsplit=1)[::2]
        text = before + (FOLDER / name).read_text(encoding="utf-8") + after
    assert load(file.stem).text == text


def test_every_part_is_used_and_has_its_own_header() -> None:
    used = {name for file in FILES for name in PART_LINE.findall(file.read_text(encoding="utf-8"))}
    assert used == {str(file.relative_to(FOLDER)) for file in PARTS}
    for file in PARTS:
        header = file.read_text(encoding="utf-8").split("\n\n", 1)[0]
        assert all(line.startswith("--") for line in header.splitlines())
        assert "Returns " in header
        assert "Writes " in header


def test_an_unknown_script_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        load("no_such_script")


@every_file
def test_a_header_says_what_a_caller_must_know(file: Path) -> None:
    header = file.read_text(encoding="utf-8").split("\n\n", 1)[0]
    assert all(line.startswith("--") for line in header.splitlines())
    for word in ("KEYS ", "ARGV ", "Reply", "Writes "):
        assert word in header


@every_text
def test_no_number_is_made_into_text(file: Path) -> None:
    # Lua writes numbers with 14 digits; a time in microseconds has 16.
    assert not re.search(r"\.\.|tostring|string\.format", code_of(file))


@every_text
def test_only_the_clock_of_the_server_is_read(file: Path) -> None:
    code = code_of(file)
    assert code.count("redis.call('TIME')") <= 1
    assert "os." not in code


@every_file
def test_the_readme_has_a_row_for_it(file: Path) -> None:
    assert f"| `{file.stem}` |" in README


@pytest.mark.parametrize("key", team_keys("teamId"))
def test_the_readme_has_a_row_for_a_key(key: str) -> None:
    assert f"| `{key}` |" in README
