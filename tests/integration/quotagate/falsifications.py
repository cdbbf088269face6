"""Every way in which books can be wrong that verify knows: what is done, and what must be found.

Each is done to a copy of the true books with all triggers off; see `Scratch.falsify`.
"""

import pytest

from quotagate.verify import Kind

FALSIFICATIONS = [
    pytest.param(
        "UPDATE spend SET amount_usd = amount_usd + 0.000000000000000000001 WHERE api_key_id = ''",
        {Kind.SPEND_AMOUNT: 1},
        id="what was spent is off by the last digit",
    ),
    pytest.param(
        "UPDATE spend SET account_version = 1",
        {Kind.SPEND_AMOUNT: 2},
        id="what was spent is of an earlier version",
    ),
    pytest.param(
        "UPDATE account SET balance_usd = balance_usd + 0.000000000000000000001"
        " WHERE team_id = 'a'",
        {Kind.BALANCE_IS_NOT_THE_SUM: 1, Kind.BALANCE_IS_NOT_THE_LAST: 1},
        id="a balance is off by the last digit",
    ),
    pytest.param(
        "UPDATE account SET balance_usd = balance_usd + CASE team_id WHEN 'a' THEN 1 ELSE -1 END"
        " WHERE team_id IN ('a', 'b')",
        {Kind.BALANCE_IS_NOT_THE_SUM: 2, Kind.BALANCE_IS_NOT_THE_LAST: 2},
        id="money went from one account to another",
    ),
    pytest.param(
        "UPDATE ledger_entry SET balance_after_usd = balance_after_usd + 1"
        " WHERE team_id = 'a' AND account_version = 5;"
        "UPDATE account SET balance_usd = balance_usd + 1 WHERE team_id = 'a'",
        {Kind.RUNNING_BALANCE: 1, Kind.BALANCE_IS_NOT_THE_SUM: 1},
        id="balance and last entry agree on a wrong amount",
    ),
    pytest.param(
        "UPDATE ledger_entry SET balance_after_usd = balance_after_usd + 1"
        " WHERE team_id = 'a' AND account_version = 3",
        {Kind.RUNNING_BALANCE: 2},
        id="a running balance in the middle is wrong",
    ),
    pytest.param(
        "DELETE FROM ledger_entry WHERE team_id = 'a' AND account_version = 4",
        {Kind.LEDGER_VERSION: 1, Kind.RUNNING_BALANCE: 1, Kind.BALANCE_IS_NOT_THE_SUM: 1},
        id="an entry is gone from the middle",
    ),
    pytest.param(
        "DELETE FROM ledger_entry WHERE team_id = 'b' AND account_version = 1",
        {Kind.LEDGER_VERSION: 1, Kind.RUNNING_BALANCE: 1, Kind.BALANCE_IS_NOT_THE_SUM: 1},
        id="the first entry is gone",
    ),
    pytest.param(
        "ALTER TABLE ledger_entry DROP CONSTRAINT ledger_entry_team_id_account_version_key;"
        "UPDATE ledger_entry SET account_version = 4 WHERE team_id = 'a' AND account_version = 5;"
        "UPDATE account SET version = 4 WHERE team_id = 'a'",
        {Kind.LEDGER_VERSION: 1, Kind.BALANCE_IS_NOT_THE_LAST: 1},
        id="a version is there twice",
    ),
    pytest.param(
        "UPDATE ledger_entry SET direction = 'CREDIT' WHERE team_id = 'a' AND account_version = 3",
        {Kind.RUNNING_BALANCE: 1, Kind.BALANCE_IS_NOT_THE_SUM: 1},
        id="a debit became a credit",
    ),
    pytest.param(
        "ALTER TABLE ledger_entry DROP CONSTRAINT ledger_entry_amount_usd_check;"
        "INSERT INTO ledger_entry (team_id, direction, reason, amount_usd, balance_after_usd,"
        " account_version) VALUES ('idle', 'DEBIT', 'ADJUSTMENT', -5, 5, 1);"
        "UPDATE account SET balance_usd = 5, version = 1 WHERE team_id = 'idle'",
        {Kind.ENTRY_AMOUNT: 1},
        id="a debit below zero",
    ),
    pytest.param(
        "ALTER TABLE ledger_entry DROP CONSTRAINT ledger_entry_amount_usd_check;"
        "ALTER TABLE account DROP CONSTRAINT account_balance_usd_check;"
        "INSERT INTO ledger_entry (team_id, direction, reason, amount_usd, balance_after_usd,"
        " account_version) VALUES ('idle', 'CREDIT', 'CREDIT', 'NaN', 'NaN', 1);"
        "UPDATE account SET balance_usd = 'NaN', version = 1 WHERE team_id = 'idle'",
        {Kind.ENTRY_AMOUNT: 1},
        id="an amount that is no number",
    ),
    pytest.param(
        "UPDATE account SET version = version + 1 WHERE team_id = 'a'",
        {Kind.ACCOUNT_VERSION: 1},
        id="an account is ahead of its ledger",
    ),
    pytest.param(
        "DELETE FROM account WHERE team_id = 'idle'",
        {Kind.TEAM_WITHOUT_ACCOUNT: 1},
        id="a team without an account",
    ),
    pytest.param(
        "DELETE FROM account WHERE team_id = 'b'",
        {Kind.TEAM_WITHOUT_ACCOUNT: 1, Kind.LEDGER_WITHOUT_ACCOUNT: 1},
        id="a ledger without an account",
    ),
    pytest.param(
        "DELETE FROM team WHERE team_id = 'b'",
        {Kind.ACCOUNT_WITHOUT_TEAM: 1},
        id="an account without a team",
    ),
    pytest.param(
        "UPDATE usage_charge SET amount_usd = amount_usd + 1e-60"
        " WHERE inference_record_id = pg_temp.record('a-2')",
        {Kind.CHARGE_AMOUNT: 1, Kind.ENTRY_IS_NOT_ITS_CHARGES: 1, Kind.TEAM_USAGE: 1},
        id="a charge is off by less than any price has digits",
    ),
    pytest.param(
        "UPDATE usage_charge SET amount_usd = amount_usd + 1"
        " WHERE inference_record_id = pg_temp.record('b-1');"
        "UPDATE ledger_entry SET amount_usd = amount_usd + 1,"
        " balance_after_usd = balance_after_usd - 1 WHERE team_id = 'b' AND account_version = 2;"
        "UPDATE account SET balance_usd = balance_usd - 1 WHERE team_id = 'b'",
        {Kind.CHARGE_AMOUNT: 1},
        id="charge, entry and balance agree on a wrong amount",
    ),
    pytest.param(
        "UPDATE usage_charge AS mine SET amount_usd = other.amount_usd FROM usage_charge AS other"
        " WHERE (mine.inference_record_id, other.inference_record_id) IN"
        " ((pg_temp.record('a-1'), pg_temp.record('a-2')),"
        " (pg_temp.record('a-2'), pg_temp.record('a-1')))",
        {Kind.CHARGE_AMOUNT: 2},
        id="two charges of one debit are exchanged",
    ),
    pytest.param(
        "UPDATE usage_charge SET amount_usd = CAST(CAST(amount_usd AS double precision) AS numeric)"
        " WHERE inference_record_id = pg_temp.record('a-3')",
        {Kind.CHARGE_AMOUNT: 1, Kind.ENTRY_IS_NOT_ITS_CHARGES: 1, Kind.TEAM_USAGE: 1},
        id="a charge went through a float",
    ),
    pytest.param(
        "UPDATE inference_record SET output_tokens = output_tokens + 1 WHERE inference_id = 'a-1'",
        {Kind.CHARGE_AMOUNT: 1},
        id="a record's usage changed afterwards",
    ),
    pytest.param(
        "UPDATE price SET reasoning_usd_per_million = 1 WHERE model = 'large'",
        {Kind.CHARGE_AMOUNT: 2},
        id="a price was edited",
    ),
    pytest.param(
        "DELETE FROM usage_charge WHERE inference_record_id = pg_temp.record('a-1')",
        {Kind.RECORD_WITHOUT_CHARGE: 1, Kind.ENTRY_IS_NOT_ITS_CHARGES: 1, Kind.TEAM_USAGE: 1},
        id="a charge is gone",
    ),
    pytest.param(
        "DELETE FROM usage_charge WHERE inference_record_id = pg_temp.record('a-free')",
        {Kind.RECORD_WITHOUT_CHARGE: 1},
        id="a charge of zero is gone",
    ),
    pytest.param(
        "DELETE FROM inference_record WHERE inference_id = 'a-1'",
        {Kind.CHARGE_WITHOUT_RECORD: 1},
        id="a charged record is gone",
    ),
    pytest.param(
        "UPDATE inference_record SET state = 'PENDING', settled_at = NULL"
        " WHERE inference_id = 'a-1'",
        {Kind.CHARGE_OF_UNSETTLED_RECORD: 1},
        id="a charged record is pending",
    ),
    pytest.param(
        "UPDATE inference_record SET state = 'HELD', settled_at = NULL, held_reason = 'x'"
        " WHERE inference_id = 'a-1'",
        {Kind.CHARGE_OF_UNSETTLED_RECORD: 1},
        id="a charged record is held",
    ),
    pytest.param(
        "UPDATE inference_record SET state = 'UNBILLABLE', settled_at = NULL"
        " WHERE inference_id = 'a-1'",
        {Kind.CHARGE_OF_UNSETTLED_RECORD: 1, Kind.USAGE_NOT_CHARGED: 1},
        id="a charged record is unbillable",
    ),
    pytest.param(
        "INSERT INTO usage_charge (inference_record_id, team_id, price_id, amount_usd)"
        " VALUES (pg_temp.record('a-failed'), 'a', '00000000-0000-0000-0000-000000000004', 0)",
        {
            Kind.CHARGE_OF_UNSETTLED_RECORD: 1,
            Kind.CHARGE_WITHOUT_USAGE: 1,
            Kind.CHARGE_BY_ANOTHER_PRICE: 1,
        },
        id="unknown spend was charged",
    ),
    pytest.param(
        "UPDATE inference_record SET input_tokens = NULL, cache_read_tokens = NULL,"
        " cache_write_5m_tokens = NULL, cache_write_1h_tokens = NULL, output_tokens = NULL,"
        " reasoning_tokens = NULL WHERE inference_id = 'a-1'",
        {Kind.CHARGE_WITHOUT_USAGE: 1},
        id="a charged record lost its usage",
    ),
    pytest.param(
        "UPDATE usage_charge SET price_id = '00000000-0000-0000-0000-000000000002'"
        " WHERE inference_record_id = pg_temp.record('a-1')",
        {Kind.CHARGE_BY_ANOTHER_PRICE: 1},
        id="a charge by the price's next version, though the amount is the same",
    ),
    pytest.param(
        "UPDATE inference_record SET price_id = NULL WHERE inference_id = 'a-1'",
        {Kind.CHARGE_BY_ANOTHER_PRICE: 1},
        id="a charge where no price was pinned",
    ),
    pytest.param(
        "DELETE FROM price WHERE model = 'free'",
        {Kind.CHARGE_WITHOUT_PRICE: 1},
        id="a charge's price is gone",
    ),
    pytest.param(
        "UPDATE inference_record SET provider = 'other' WHERE inference_id = 'a-1'",
        {Kind.PRICE_OF_ANOTHER_MODEL: 1},
        id="a price of another provider",
    ),
    pytest.param(
        "UPDATE inference_record SET model_sent = 'large' WHERE inference_id = 'a-1'",
        {Kind.PRICE_OF_ANOTHER_MODEL: 1},
        id="a price of another model",
    ),
    pytest.param(
        "UPDATE price SET effective_from = now() + interval '1 day' WHERE model = 'free'",
        {Kind.PRICE_NOT_IN_EFFECT: 1},
        id="a price that takes effect tomorrow",
    ),
    pytest.param(
        "UPDATE usage_charge SET team_id = 'b' WHERE inference_record_id = pg_temp.record('a-1')",
        {Kind.CHARGE_OF_ANOTHER_TEAM: 1, Kind.CHARGE_OF_ANOTHER_TEAMS_ENTRY: 1, Kind.TEAM_USAGE: 2},
        id="a charge of another team",
    ),
    pytest.param(
        "ALTER TABLE usage_charge DROP CONSTRAINT usage_charge_ledger_entry_id_check;"
        "UPDATE usage_charge SET ledger_entry_id = NULL"
        " WHERE inference_record_id = pg_temp.record('a-1')",
        {Kind.CHARGE_WITHOUT_DEBIT: 1, Kind.ENTRY_IS_NOT_ITS_CHARGES: 1},
        id="a charge that no debit took",
    ),
    pytest.param(
        "UPDATE usage_charge SET ledger_entry_id = pg_temp.entry('a', 1)"
        " WHERE inference_record_id = pg_temp.record('a-1')",
        {Kind.CHARGE_OF_NO_USAGE_DEBIT: 1, Kind.ENTRY_IS_NOT_ITS_CHARGES: 1},
        id="a charge that names a credit",
    ),
    pytest.param(
        "UPDATE usage_charge SET ledger_entry_id = 999999"
        " WHERE inference_record_id = pg_temp.record('a-1')",
        {Kind.CHARGE_WITHOUT_ENTRY: 1, Kind.ENTRY_IS_NOT_ITS_CHARGES: 1},
        id="a charge that names no entry",
    ),
    pytest.param(
        "INSERT INTO ledger_entry (team_id, direction, reason, amount_usd, balance_after_usd,"
        " account_version) VALUES ('idle', 'DEBIT', 'USAGE', 5, -5, 1);"
        "UPDATE account SET balance_usd = -5, version = 1 WHERE team_id = 'idle'",
        {Kind.ENTRY_IS_NOT_ITS_CHARGES: 1, Kind.TEAM_USAGE: 1},
        id="a usage debit without charges",
    ),
    pytest.param(
        "ALTER TABLE inference_record DROP CONSTRAINT inference_record_inference_id_attempt_no_key;"
        "CREATE TABLE copied AS SELECT * FROM inference_record WHERE inference_id = 'b-pending';"
        "UPDATE copied SET record_id = 1000000;"
        "INSERT INTO inference_record OVERRIDING SYSTEM VALUE SELECT * FROM copied",
        {Kind.DUPLICATE_RECORD: 1},
        id="a record is there twice",
    ),
    pytest.param(
        "ALTER TABLE usage_charge DROP CONSTRAINT usage_charge_pkey;"
        "INSERT INTO usage_charge SELECT * FROM usage_charge"
        " WHERE inference_record_id = pg_temp.record('a-1')",
        {Kind.DUPLICATE_CHARGE: 1, Kind.ENTRY_IS_NOT_ITS_CHARGES: 1, Kind.TEAM_USAGE: 1},
        id="a record is charged twice",
    ),
    pytest.param(
        "UPDATE inference_record SET received_at = now() - interval '1 hour'"
        " WHERE inference_id IN ('b-pending', 'a-held', 'a-failed', 'a-1')",
        {Kind.PENDING_TOO_LONG: 1},
        id="a record waits for its charge since an hour",
    ),
    pytest.param(
        "UPDATE inference_record SET output_tokens = 5 WHERE inference_id = 'a-failed'",
        {Kind.USAGE_NOT_CHARGED: 1},
        id="usage that counts as unbillable",
    ),
]
