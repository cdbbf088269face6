"""No digit is lost, however many charges there are and however small they are."""

from decimal import Decimal

from integration.tables.conftest import Database
from integration.tables.rows import add_price, charge, open_team
from sqlalchemy import text

from tables.account import Posting, debit, lock_accounts
from tables.ledger import Reason

_RECORDS = text(
    "INSERT INTO inference_record (inference_id, attempt_no, team_id, api_key_id, endpoint,"
    " provider, model_asked, outcome, usage_source, input_tokens, cache_read_tokens,"
    " cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, streaming,"
    " client_gone, started_at, state, stream_sequence)"
    " SELECT :team || n, 1, :team, 'k', 'e', 'p', 'm', 'succeeded', 'provider', 1, 0, 0, 0, 0, 0,"
    " false, false, now(), 'PENDING', n FROM generate_series(1, CAST(:count AS bigint)) AS n"
    " RETURNING record_id"
)


async def test_a_million_tiny_charges_add_up_exactly(database: Database) -> None:
    """In a table like the charges', so that the test isn't about a million foreign keys."""
    atto = Decimal("1e-18")
    exact = sum(range(1, 1_000_001)) * atto
    async with database.owner.connect() as connection:
        await connection.execute(text("CREATE TABLE draft (LIKE usage_charge INCLUDING ALL)"))
        await connection.execute(
            text(
                "INSERT INTO draft (inference_record_id, team_id, price_id, amount_usd,"
                " ledger_entry_id)"
                " SELECT n, 't', gen_random_uuid(), n * CAST(:atto AS numeric), 1"
                " FROM generate_series(1, 1000000) AS n"
            ),
            {"atto": atto},
        )
        sums = (
            await connection.execute(
                text(
                    "SELECT count(*) AS charges, sum(amount_usd) AS amount_usd,"
                    " sum(CAST(amount_usd AS double precision)) AS binary_sum FROM draft"
                )
            )
        ).one()
        await connection.rollback()
    assert (sums.charges, sums.amount_usd) == (1_000_000, exact)
    # What the test is worth: binary fractions get it wrong.
    assert Decimal(sums.binary_sum) != exact


async def test_many_tiny_charges_settle_to_the_last_digit(database: Database) -> None:
    team_id = await open_team(database.control_plane)
    price_id = await add_price(database.control_plane)
    count, tiny = 20_000, Decimal("0.000000000000000000123456789")
    async with database.settlement.begin() as connection:
        assert [a.team_id for a in await lock_accounts(connection, [team_id])] == [team_id]
        records = (await connection.scalars(_RECORDS, {"team": team_id, "count": count})).all()
        entry = await debit(
            connection,
            Posting(team_id=team_id, amount_usd=count * tiny, reason=Reason.USAGE),
        )
        await charge(connection, team_id, price_id, entry, dict.fromkeys(records, tiny))
    assert entry.balance_after_usd == (count * tiny).copy_negate()
    async with database.control_plane.connect() as connection:
        row = (
            await connection.execute(
                text(
                    "SELECT balance_usd, (SELECT sum(amount_usd) FROM usage_charge"
                    " WHERE team_id = :team) AS charged FROM account WHERE team_id = :team"
                ),
                {"team": team_id},
            )
        ).one()
    assert row.charged == count * tiny
    assert row.balance_usd == row.charged.copy_negate()
