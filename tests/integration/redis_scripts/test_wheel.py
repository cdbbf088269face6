"""The built package carries its scripts: a service installed from wheels finds them."""

import subprocess
import sys
import zipfile
from pathlib import Path

import redis_scripts

PROJECT = Path(redis_scripts.__file__).parents[1]


def test_a_wheel_finds_its_scripts(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)  # noqa: S603 - our own build
    [wheel] = tmp_path.glob("*.whl")
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)

    load_all = "import redis_scripts.scripts as s; print(s.__file__, s._PREFLIGHT.sha)"
    run = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", load_all],
        cwd=tmp_path,
        env={"PYTHONPATH": str(unpacked)},
        check=True,
        capture_output=True,
        text=True,
    )

    file, sha = run.stdout.rsplit(maxsplit=1)
    assert Path(file).is_relative_to(unpacked)
    assert sha == redis_scripts.scripts._PREFLIGHT.sha
