"""Versions that fence caches go up by themselves."""

from integration.tables.conftest import Database
from integration.tables.rows import new_name, open_team
from sqlalchemy import text


async def test_a_tier_change_raises_the_fence_by_one(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    other = await open_team(database.control_plane)
    change = text(
        "UPDATE team SET tier_id = (SELECT tier_id FROM team WHERE team_id = :other),"
        " name = :name WHERE team_id = :team RETURNING tier_version"
    )
    async with database.control_plane.begin() as connection:
        names = {"team": team_id, "other": other}
        assert await connection.scalar(change, names | {"name": "moved"}) == 2
        assert await connection.scalar(change, names | {"name": "only renamed"}) == 2
        assert await connection.scalar(change, names | {"other": other, "name": "again"}) == 2


async def test_a_policy_change_raises_the_tiers_version(database: Database) -> None:
    tier_id = new_name("tier")
    async with database.control_plane.begin() as connection:
        created = (
            await connection.execute(
                text(
                    "INSERT INTO tier (tier_id, rpm, tpm) VALUES (:tier, 1, 1)"
                    " RETURNING version, updated_at"
                ),
                {"tier": tier_id},
            )
        ).one()
        changed = (
            await connection.execute(
                text("UPDATE tier SET rpm = 2 WHERE tier_id = :tier RETURNING version, updated_at"),
                {"tier": tier_id},
            )
        ).one()
    assert (created.version, changed.version) == (1, 2)
    assert created.updated_at < changed.updated_at
