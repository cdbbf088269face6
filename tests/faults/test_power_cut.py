"""A power cut in the middle of the work: what was acknowledged is on the disk.

And, so that this is seen to mean something: without our settings a power cut does lose it.
"""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from faults.power_cut import disk
from faults.power_cut.broker import Acknowledgements, Broker, make_stream, stored_ids

from edge_proxy.store.spool import Spool

_CUTS = 3
_ENOUGH = 200


@pytest.fixture(scope="module", autouse=True)
def loop_device(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("probe")
    try:
        disk.make(folder / "disk")
        with disk.mounted(folder / "disk", folder / "at"):
            pass
    except disk.NoLoopDeviceError as error:
        pytest.skip(f"no power can be cut here: {error}")


async def _lost_messages(folder: Path, *, synced: bool) -> list[int]:
    """Cut the power a few times under load; return how many acknowledged messages each cost."""
    image = folder / "disk"
    disk.make(image)
    broker = Broker(folder, synced=synced)
    acknowledged: list[set[str]] = []
    with disk.mounted(image, folder / "at") as at:
        async with broker.running(at / "data") as client:
            await make_stream(client)
            publishing = Acknowledgements(client)
            async with publishing.running():
                for number in range(_CUTS):
                    while len(publishing.ids) < (number + 1) * _ENOUGH:
                        await asyncio.sleep(0.005)
                    with broker.frozen():
                        disk.cut(image, folder / f"cut-{number}")
                        # Whatever was acknowledged before has arrived by now.
                        await asyncio.sleep(0.1)
                        acknowledged.append(set(publishing.ids))
    lost = []
    for number, ids in enumerate(acknowledged):
        with disk.mounted(folder / f"cut-{number}", folder / "at") as at:
            async with broker.running(at / "data") as client:
                lost.append(len(ids - await stored_ids(client)))
    return lost


async def test_no_acknowledged_message_is_lost(tmp_path: Path) -> None:
    assert await _lost_messages(tmp_path, synced=True) == [0] * _CUTS


async def test_with_the_default_sync_interval_they_are(tmp_path: Path) -> None:
    assert all(lost > _ENOUGH / 2 for lost in await _lost_messages(tmp_path, synced=False))


def _lost_spooled_records(folder: Path, *options: str) -> int:
    """Cut the power while records are spooled; return how many of those kept are lost."""
    image = folder / "disk"
    disk.make(image)
    with disk.mounted(image, folder / "at") as at:
        command = [sys.executable, "-m", "faults.power_cut.spooler", str(at / "spool"), *options]
        with subprocess.Popen(  # noqa: S603 - our own program
            command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            kept = [process.stdout.readline() for _ in range(_ENOUGH)]
            process.send_signal(signal.SIGSTOP)
            disk.cut(image, folder / "cut")
            process.kill()
            kept += process.stdout.readlines()
    with disk.mounted(folder / "cut", folder / "at") as at:
        spool = Spool(at / "spool") if (at / "spool").is_dir() else None
        return sum(spool is None or line.strip() not in spool for line in kept)


def test_no_spooled_record_is_lost(tmp_path: Path) -> None:
    assert _lost_spooled_records(tmp_path) == 0


def test_without_syncing_they_are(tmp_path: Path) -> None:
    assert _lost_spooled_records(tmp_path, "--unsynced") > _ENOUGH / 2
