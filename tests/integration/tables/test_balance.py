"""Whatever is credited and debited: the balance is the sum, and what the last entry says."""

from decimal import Decimal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integration.tables.conftest import Database
from integration.tables.rows import add_price, open_team, settle_one
from sqlalchemy import text

from tables.account import Posting, credit, debit
from tables.ledger import Reason

AMOUNTS_USD = st.decimals(
    min_value=Decimal("1e-30"), max_value=Decimal("1e20"), allow_nan=False, places=None
)
MOVES = st.lists(st.tuples(st.sampled_from(["credit", "up", "down", "usage"]), AMOUNTS_USD))


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(moves=MOVES)
async def test_balance_is_credits_minus_debits_and_the_last_entry(
    database: Database, moves: list[tuple[str, Decimal]]
) -> None:
    team_id = await open_team(database.control_plane)
    price_id = await add_price(database.control_plane)
    for move, amount_usd in moves:
        if move == "usage":
            await settle_one(database.settlement, team_id, price_id, amount_usd)
            continue
        reason = Reason.CREDIT if move == "credit" else Reason.ADJUSTMENT
        posting = Posting(team_id=team_id, amount_usd=amount_usd, reason=reason)
        async with database.control_plane.begin() as connection:
            await (debit if move == "down" else credit)(connection, posting)
    async with database.control_plane.connect() as connection:
        sums = (
            await connection.execute(
                text(
                    "SELECT balance_usd,"
                    " coalesce(sum(l.amount_usd) FILTER (WHERE direction = 'CREDIT'), 0)"
                    " - coalesce(sum(l.amount_usd) FILTER (WHERE direction = 'DEBIT'), 0) AS moved,"
                    " coalesce((SELECT balance_after_usd FROM ledger_entry AS e"
                    "  WHERE e.team_id = :team ORDER BY account_version DESC LIMIT 1), 0) AS last,"
                    " coalesce(sum(l.amount_usd) FILTER (WHERE reason = 'USAGE'), 0) AS used,"
                    " coalesce((SELECT sum(amount_usd) FROM usage_charge"
                    "  WHERE team_id = :team), 0) AS charged,"
                    " version, count(l.entry_id) AS entries"
                    " FROM account LEFT JOIN ledger_entry AS l USING (team_id)"
                    " WHERE team_id = :team GROUP BY balance_usd, version"
                ),
                {"team": team_id},
            )
        ).one()
    assert sums.balance_usd == sums.moved == sums.last
    assert sums.used == sums.charged
    assert sums.version == sums.entries == len(moves)
