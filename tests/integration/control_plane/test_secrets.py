"""The key's text and the admin token reach no table and no log; what is hidden stays hidden."""

from pathlib import Path

from integration.control_plane.opened import open_team, told
from integration.control_plane.process import ADMIN_TOKEN, KEY_PEPPER, running
from integration.tables.rows import new_name
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from kit import keys
from quotagate.stack import Servers


async def every_row(owner: AsyncEngine) -> str:
    """Return all rows of all tables as text, bytes readable."""
    async with owner.connect() as connection:
        await connection.execute(text("SET bytea_output = 'escape'"))
        tables = await connection.scalars(
            text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        )
        found: list[str] = []
        for table in tables.all():
            select = text(f'SELECT t::text FROM "{table}" AS t')  # noqa: S608 (the catalogue's names)
            rows = await connection.scalars(select)
            found.extend(f"{table}: {row}" for row in rows.all())
    return "\n".join(found)


async def test_secrets_are_in_no_table_and_no_log(
    servers: Servers, tmp_path: Path, owner: AsyncEngine
) -> None:
    debug = {"QUOTAGATE_LOG_LEVEL": "debug"}
    async with running(servers, tmp_path, debug) as process, process.operator() as operator:
        await process.becomes_ready()
        team_id, headers = await open_team(operator), {"Idempotency-Key": new_name("once")}
        path = f"/teams/{team_id}/keys"
        made = await told(operator.post(path, json={}, headers=headers), 201)
        await told(operator.post(path, json={}, headers=headers), 201)
        # A key in the wrong place, as people do it.
        await operator.get(f"/teams/{made['key']}")
        await operator.delete(f"/keys/{made['key']}")
        await operator.get(f"/teams/{team_id}", headers={"Authorization": f"Bearer {made['key']}"})
        await operator.post(path, json={"name": 7, "key": made["key"]})
    parsed = keys.parse(made["key"])
    assert parsed is not None
    rows, log = await every_row(owner), process.log()
    assert made["key_id"] in rows
    assert "admin request" in log
    for secret in (parsed.secret, ADMIN_TOKEN, KEY_PEPPER):
        assert secret not in rows
        assert secret not in log
