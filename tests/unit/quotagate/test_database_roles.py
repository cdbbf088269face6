"""A role's password leaves this process only as what Postgres would store for it."""

import pytest

from quotagate.database_roles import scram_verifier


def test_a_verifier_is_what_postgres_itself_would_store() -> None:
    """The verifier of RFC 7677's example: password `pencil`, its salt, 4096 iterations."""
    verifier = scram_verifier("pencil", bytes.fromhex("5b6d99689d12358e ec a0 4b 14 12 36 fa 81"))
    assert verifier == (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ=="
        "$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
        ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )


@pytest.mark.parametrize(
    "password",
    [
        pytest.param("", id="empty"),
        pytest.param("pass\nword", id="a control character"),
        pytest.param("pässword", id="beyond ASCII"),
    ],
)
def test_a_password_that_would_be_rewritten_is_refused(password: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        scram_verifier(password, bytes(16))
