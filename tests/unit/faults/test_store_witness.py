"""Lines of Valkey's monitor, and what they witness."""

from typing import cast

import pytest
from faults.evidence import Debit, VersionSet
from faults.store_witness import StoreWitness
from faults.world import World

_AT = b"+1700000000.000123 "


@pytest.fixture
def witness() -> StoreWitness:
    return StoreWitness(cast("World", None))


@pytest.mark.parametrize(
    ("line", "debits", "versions"),
    [
        pytest.param(
            b'[0 lua] "DECRBY" "quota:{team-1}:account-balance" "17"',
            [Debit(team_id="team-1", amount_nano_usd=17, at_us=1_700_000_000_000_123)],
            [],
            id="a debit in a script",
        ),
        pytest.param(
            b'[0 lua] "set" "quota:{team-1}:account-balance:version" "4" "PX" "3600000"',
            [],
            [VersionSet(team_id="team-1", version=4, at_us=1_700_000_000_000_123, life=0)],
            id="a version",
        ),
        pytest.param(b'[0 lua] "SET" "quota:{team-1}:account-balance" "4"', [], [], id="a balance"),
        pytest.param(b'[0 lua] "GET" "quota:{team-1}:account-balance"', [], [], id="a read"),
        pytest.param(
            b'[0 127.0.0.1:40000] "EVALSHA" "abc" "2" "quota:{team-1}:account-balance"',
            [],
            [],
            id="the call of a script",
        ),
        pytest.param(b'[0 127.0.0.1:40000] "PING"', [], [], id="a command without a key"),
    ],
)
def test_what_a_line_witnesses(
    witness: StoreWitness, line: bytes, debits: list[Debit], versions: list[VersionSet]
) -> None:
    witness.hear(_AT + line + b"\r\n")
    assert (witness.debits, witness.versions) == (debits, versions)


def test_a_flush_begins_another_life(witness: StoreWitness) -> None:
    version = _AT + b'[0 lua] "SET" "quota:{team-1}:account-balance:version" "1"\r\n'
    witness.hear(version)
    witness.hear(_AT + b'[0 127.0.0.1:40000] "flushall"\r\n')
    witness.hear(version)
    assert [each.life for each in witness.versions] == [0, 1]
