"""The demo data: the same whenever it is made again, and its key readable by nobody else."""

import asyncio
import stat
from pathlib import Path

import httpx
import pytest
from integration.control_plane.process import ADMIN_TOKEN, ControlPlane

from kit import keys
from quotagate import demo as demo_data
from quotagate.demo import DemoData, DemoError, demo


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def make(control_plane: ControlPlane, key_file: Path) -> DemoData:
    return await asyncio.to_thread(demo, control_plane.url, ADMIN_TOKEN, key_file)


async def test_running_it_twice_gives_the_same(
    control_plane: ControlPlane, operator: httpx.AsyncClient, tmp_path: Path
) -> None:
    first = await make(control_plane, tmp_path / "demo-key")
    ledger = (await operator.get("/teams/demo/ledger")).json()
    prices = (await operator.get("/prices?provider=fake&limit=200")).json()
    assert await make(control_plane, tmp_path / "demo-key") == first
    assert (await operator.get("/teams/demo/ledger")).json() == ledger
    assert (await operator.get("/prices?provider=fake&limit=200")).json() == prices
    tier = (await operator.get("/tiers/tier_1")).json()
    assert (tier["rpm"], tier["tpm"]) == (20, 100_000)
    assert (await operator.get("/teams/demo/account")).json()["balance"] == "10"
    assert {price["model"] for price in prices["items"]} >= set(demo_data.PRICES["fake"])


async def test_its_key_is_one_of_the_team_and_only_its_owner_may_read_the_file(
    control_plane: ControlPlane, operator: httpx.AsyncClient, tmp_path: Path
) -> None:
    made = await make(control_plane, tmp_path / "demo-key")
    parsed = keys.parse(made.key)
    assert parsed is not None
    found = (await operator.get("/teams/demo/keys?limit=200")).json()["items"]
    assert parsed.key_id in {key["key_id"] for key in found}
    assert (tmp_path / "demo-key").read_text(encoding="ascii").strip() == made.key
    assert stat.S_IMODE((tmp_path / "demo-key").stat().st_mode) == 0o600
    assert names(tmp_path) == ["demo-key"]
    assert made.key not in repr(made)


async def test_a_revoked_key_is_replaced(
    control_plane: ControlPlane, operator: httpx.AsyncClient, tmp_path: Path
) -> None:
    first = await make(control_plane, tmp_path / "demo-key")
    parsed = keys.parse(first.key)
    assert parsed is not None
    await operator.delete(f"/keys/{parsed.key_id}")
    second = await make(control_plane, tmp_path / "demo-key")
    assert second.key != first.key
    assert await make(control_plane, tmp_path / "demo-key") == second


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xff\xfe"], ids=repr)
async def test_a_file_without_a_key_is_replaced(
    control_plane: ControlPlane, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "demo-key").write_bytes(content)
    made = await make(control_plane, tmp_path / "demo-key")
    assert keys.parse(made.key) is not None


async def test_what_an_operator_changed_stays(
    control_plane: ControlPlane, operator: httpx.AsyncClient, tmp_path: Path
) -> None:
    await make(control_plane, tmp_path / "demo-key")
    await operator.put("/tiers/tier_1", json={"rpm": 21, "tpm": 100_000})
    try:
        await make(control_plane, tmp_path / "demo-key")
        assert (await operator.get("/tiers/tier_1")).json()["rpm"] == 21
    finally:
        await operator.put("/tiers/tier_1", json={"rpm": 20, "tpm": 100_000})


async def test_it_says_why_it_could_not(control_plane: ControlPlane, tmp_path: Path) -> None:
    with pytest.raises(DemoError, match=r"GET /admin/v1/tiers/tier_1: 401 Send the admin token"):
        await asyncio.to_thread(demo, control_plane.url, "wrong", tmp_path / "demo-key")
    with pytest.raises(DemoError, match=r"doesn't answer: ConnectError"):
        await asyncio.to_thread(demo, "http://127.0.0.1:1", ADMIN_TOKEN, tmp_path / "demo-key")
    assert not names(tmp_path)
