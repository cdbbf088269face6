"""The commands as an operator runs them: what they say, in words and in JSON, and their status."""

import re
from pathlib import Path

import pytest
from integration.quotagate.command import run_command
from integration.quotagate.scratch import Scratch
from integration.quotagate.wire import empty_streams
from nats.aio.client import Client

from contracts.dead import DEAD_LETTERED, DeadLetter
from contracts.inference import INFERENCE_RECORDED, INFERENCE_RECORDS
from kit.bus.publishing import Publisher
from quotagate.stack import Stack

_FALSIFIED = "UPDATE account SET balance_usd = balance_usd + 1 WHERE team_id = 'a'"


def _variables(scratch: Scratch) -> dict[str, str]:
    """Return an environment that names the scratch database and the lab's other stores."""
    settings = scratch.settings
    return {
        "QUOTAGATE_DATABASE_URL": settings.database_url.get_secret_value(),
        "QUOTAGATE_REDIS_URL": settings.redis_url.get_secret_value(),
        "QUOTAGATE_NATS_URL": settings.nats_url,
        "QUOTAGATE_NATS_MONITOR_URL": settings.nats_monitor_url,
        "QUOTAGATE_NATS_USER": settings.nats_user,
        "QUOTAGATE_NATS_PASSWORD": settings.nats_password.get_secret_value(),
    }


@pytest.fixture
async def environment(scratch: Scratch) -> dict[str, str]:
    """The scratch database with empty streams."""
    async with empty_streams(scratch.settings):
        return _variables(scratch)


async def test_verify_says_that_all_is_in_order(environment: dict[str, str]) -> None:
    answer = await run_command("verify", environment=environment)
    assert (answer.status, answer.err) == (0, "")
    assert re.search(r"^inference records +9$", answer.out, re.MULTILINE)
    assert answer.out.endswith(
        "In order: every balance, charge and cached balance that was looked at is proved.\n"
    )


async def test_verify_lists_what_is_wrong(scratch: Scratch, environment: dict[str, str]) -> None:
    await scratch.falsify(_FALSIFIED)
    answer = await run_command("verify", "--no-cache", environment=environment)
    assert answer.status == 1
    assert "balance_is_not_the_sum: 1." in answer.out
    assert "  team a, account: should be -" in answer.out
    assert answer.out.endswith("NOT IN ORDER. Findings: 2, kinds: 2.\n")


async def test_verify_for_programs(scratch: Scratch, environment: dict[str, str]) -> None:
    fine = await run_command("verify", "--json", environment=environment)
    assert (fine.status, fine.json["proved"], fine.json["findings"]) == (0, True, [])
    assert isinstance(fine.json["figures"]["balance_usd"], str)
    await scratch.falsify(_FALSIFIED)
    wrong = await run_command("verify", "--json", "--listed", "0", environment=environment)
    assert (wrong.status, wrong.json["proved"], wrong.json["findings"]) == (1, False, [])
    assert wrong.json["counts"] == {"balance_is_not_the_last": 1, "balance_is_not_the_sum": 1}


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL", "NATS_URL"])
async def test_a_store_that_does_not_answer_is_not_in_order(
    environment: dict[str, str], name: str
) -> None:
    scheme = environment[f"QUOTAGATE_{name}"].partition("://")[0]
    away = environment | {f"QUOTAGATE_{name}": f"{scheme}://127.0.0.1:1/quotagate"}
    answer = await run_command("verify", "--json", environment=away)
    assert (answer.status, answer.json["proved"], answer.json["counts"]) == (2, False, {})
    assert len(answer.json["untold"]) == 1


async def test_what_is_found_counts_also_when_a_store_is_away(
    scratch: Scratch, environment: dict[str, str]
) -> None:
    await scratch.falsify(_FALSIFIED)
    away = environment | {"QUOTAGATE_REDIS_URL": "redis://127.0.0.1:1/0"}
    answer = await run_command("verify", environment=away)
    assert answer.status == 1
    assert "Can't tell: redis: " in answer.out


async def test_a_database_that_was_not_migrated_is_not_in_order(
    scratch: Scratch, environment: dict[str, str]
) -> None:
    await scratch.run("DROP TABLE usage_charge CASCADE")
    answer = await run_command("verify", environment=environment)
    assert answer.status == 2
    assert 'relation "usage_charge" does not exist' in answer.out


async def test_the_read_only_rights_of_the_control_plane_are_enough(
    scratch: Scratch, environment: dict[str, str]
) -> None:
    reader = environment | {"QUOTAGATE_DATABASE_URL": scratch.url("quotagate_control_plane")}
    assert (await run_command("verify", environment=reader)).status == 0


async def test_doctor_on_a_stack(lab: Stack, environment: dict[str, str]) -> None:
    answer = await run_command("doctor", "--stack", str(lab.directory))
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.endswith("Healthy: nothing that was looked at would break a promise.\n")
    in_json = await run_command("doctor", "--json", "--stack", str(lab.directory))
    assert (in_json.status, in_json.json["healthy"], in_json.json["flaws"]) == (0, True, [])


async def test_doctor_says_what_why_and_how_to_mend(
    scratch: Scratch, environment: dict[str, str]
) -> None:
    await scratch.run("GRANT INSERT ON ledger_entry TO quotagate_settlement")
    answer = await run_command("doctor", environment=environment)
    assert answer.status == 1
    assert "DANGEROUS: postgres: quotagate_settlement may INSERT ledger_entry" in answer.out
    assert "mend: REVOKE INSERT ON ledger_entry FROM quotagate_settlement" in answer.out
    assert answer.out.endswith("Flaws: 1, of them dangerous: 1.\n")


async def test_doctor_can_not_tell_without_a_server(environment: dict[str, str]) -> None:
    away = environment | {"QUOTAGATE_NATS_MONITOR_URL": "http://127.0.0.1:1"}
    answer = await run_command("doctor", environment=away)
    assert answer.status == 2
    assert "Can't tell: nats monitoring: ConnectError." in answer.out


async def test_unknown_spend(environment: dict[str, str]) -> None:
    answer = await run_command("unknown-spend", environment=environment)
    assert answer.status == 1
    assert "failed 1" in answer.out
    assert "500 × 1" in answer.out
    in_json = await run_command("unknown-spend", "--json", environment=environment)
    (row,) = in_json.json["unknown_spend"]
    assert (row["provider"], row["without_usage"], row["statuses"]) == ("fake", 1, {"500": 1})


async def test_no_unknown_spend(environment: dict[str, str]) -> None:
    answer = await run_command("unknown-spend", "--until", "2020-01-01", environment=environment)
    assert (answer.status, answer.out.splitlines()[-1]) == (0, "None.")


async def _export(scratch: Scratch, tmp_path: Path, cost_usd: str) -> Path:
    """Write an export of the day of which team `b` has its only charge."""
    await scratch.falsify(
        "UPDATE inference_record SET started_at = '2025-03-01T12:00Z', model_served = 'small'"
        " WHERE inference_id = 'b-1'"
    )
    path = tmp_path / "usage.csv"
    path.write_text(
        "start_time,model,num_model_requests,input_tokens,output_tokens,price paid\n"
        f"1740787200,small,1,2,1,{cost_usd}\n"
    )
    return path


async def test_reconcile_an_equal_export(
    scratch: Scratch, environment: dict[str, str], tmp_path: Path
) -> None:
    path = await _export(scratch, tmp_path, "0.000000825")
    arguments = ("reconcile", str(path), "--provider", "fake", "--column", "cost_usd=price paid")
    answer = await run_command(*arguments, environment=environment)
    assert answer.status == 0
    assert answer.out.endswith("Equal: each of 1 days and models.\n")


async def test_reconcile_an_export_that_differs(
    scratch: Scratch, environment: dict[str, str], tmp_path: Path
) -> None:
    path = await _export(scratch, tmp_path, "0.000001")
    arguments = ("reconcile", str(path), "--provider", "fake", "--column", "cost_usd=price paid")
    answer = await run_command(*arguments, environment=environment)
    assert answer.status == 1
    assert "+0.000000175" in answer.out
    in_json = await run_command(*arguments, "--json", environment=environment)
    (difference,) = in_json.json["differences"]
    assert (difference["measure"], difference["ours"], difference["theirs"]) == (
        "cost_usd",
        "0.000000825",
        "0.000001",
    )
    tolerant = await run_command(*arguments, "--tolerance-usd", "0.000001", environment=environment)
    assert tolerant.status == 0


async def _die(client: Client, reason: str) -> int:
    letter = DeadLetter(
        stream=INFERENCE_RECORDS.name,
        stream_sequence=999,
        subject=INFERENCE_RECORDED.subject_for("a"),
        consumer="settlement",
        reason=reason,
        payload_base64="e30=",
        failed_at_us=1,
    )
    return (await Publisher(client).publish(DEAD_LETTERED, "settlement", letter, reason, 5)).seq


async def test_dead_letters_from_the_list_to_the_last(lab: Stack, scratch: Scratch) -> None:
    async with empty_streams(scratch.settings) as client:
        first, second, third = [await _die(client, f"reason {n}") for n in (1, 2, 3)]
        stack = ("--stack", str(lab.directory))
        listed = await run_command("dead-letters", "list", *stack)
        assert listed.status == 1
        assert [f"reason {n}" in listed.out for n in (1, 2, 3)] == [True] * 3
        filtered = await run_command(
            "dead-letters", "list", "--reason", "reason 2", "--json", *stack
        )
        assert [each["number"] for each in filtered.json["dead_letters"]] == [second]

        shown = await run_command("dead-letters", "show", str(first), "--json", *stack)
        assert (shown.status, shown.json["reason"], shown.json["payload"]) == (0, "reason 1", {})

        # All three would have the same message id, so the stream takes the first of them alone.
        replayed = await run_command("dead-letters", "replay", "--all", *stack)
        assert replayed.status == 1
        assert replayed.out.splitlines()[-1] == "1 of 3 replayed."
        assert (
            f"{first}: replayed (INFERENCE_RECORDS 1, dead:INFERENCE_RECORDS:999)" in replayed.out
        )

        dropped = await run_command("dead-letters", "drop", str(second), str(third), *stack)
        assert (dropped.status, dropped.out) == (0, "2 dropped.\n")
        none = await run_command("dead-letters", "list", *stack)
        assert (none.status, none.out) == (0, "None.\n")
        assert (await client.jetstream().stream_info(INFERENCE_RECORDS.name)).state.messages == 1


USAGE = [
    pytest.param(("dead-letters", "replay"), "name dead letters by their numbers", id="no number"),
    pytest.param(("dead-letters", "show", "7"), "there is no dead letter 7", id="no such letter"),
    pytest.param(("dead-letters", "drop", "7"), "there is no dead letter 7", id="drop nothing"),
    pytest.param(("dead-letters",), "required: VERB", id="no verb"),
    pytest.param(("reconcile", "x.csv"), "required: --provider", id="no provider"),
    pytest.param(("reconcile", "nowhere.csv", "--provider", "p"), "No such file", id="no file"),
    pytest.param(("unknown-spend", "--since", "yesterday"), "not a day: 'yesterday'", id="no date"),
    pytest.param(("unknown-spend", "--until", "9999-12-31"), "not a day of", id="no such day"),
    pytest.param(("verify", "--listed", "many"), "invalid int value", id="no number of findings"),
]


@pytest.mark.parametrize(("arguments", "said"), USAGE)
async def test_wrong_usage_has_status_2(
    environment: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    answer = await run_command(*arguments, environment=environment)
    assert (answer.status, answer.out) == (2, "")
    assert said in answer.err


async def test_without_variables_and_stack_nothing_can_be_told(tmp_path: Path) -> None:
    answer = await run_command("verify", "--stack", str(tmp_path))
    assert (answer.status, answer.out) == (2, "")
    assert "isn't running" in answer.err


async def test_a_secret_may_be_in_a_file(environment: dict[str, str], tmp_path: Path) -> None:
    secret = tmp_path / "database"
    secret.write_text(environment.pop("QUOTAGATE_DATABASE_URL") + "\n")
    answer = await run_command(
        "unknown-spend", environment=environment | {"QUOTAGATE_DATABASE_URL_FILE": str(secret)}
    )
    assert answer.status == 1
