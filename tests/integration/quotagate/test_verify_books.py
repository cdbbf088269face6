"""Verify against true books, and against books that are wrong in every way it knows."""

from dataclasses import replace

import pytest
from integration.quotagate.falsifications import FALSIFICATIONS
from integration.quotagate.scratch import Scratch
from integration.quotagate.true_books import CHARGED_USD, OTHER_ENTRIES_USD

from kit.money import exact_sum, format_usd, negated
from quotagate.verify import SENTENCES, Kind, Options, Report, verify

OPTIONS = Options(with_cache=False, with_stream=False)


async def _counts(scratch: Scratch, options: Options = OPTIONS) -> dict[Kind, int]:
    report = await verify(scratch.settings, options)
    assert report.untold == []
    assert len(report.findings) == sum(report.counts.values())
    return dict(report.counts)


async def test_true_books_are_proved(scratch: Scratch) -> None:
    report = await verify(scratch.settings, OPTIONS)
    assert report.counts == {}
    assert report.untold == []
    del report.figures["seconds"]
    assert report.figures == {
        "accounts": 4,
        "ledger_entries": 9,
        "usage_charges": 6,
        "records": 9,
        "settled": 6,
        "pending": 1,
        "unbillable": 1,
        "held": 1,
        "written_off": 0,
        "charged_usd": format_usd(CHARGED_USD),
        "balance_usd": format_usd(exact_sum(OTHER_ENTRIES_USD, negated(CHARGED_USD))),
    }


@pytest.mark.parametrize(("script", "expected"), FALSIFICATIONS)
async def test_what_is_wrong_is_found_and_nothing_else(
    scratch: Scratch, script: str, expected: dict[Kind, int]
) -> None:
    await scratch.falsify(script)
    assert await _counts(scratch) == expected


def test_every_kind_that_books_can_show_is_falsified_above() -> None:
    shown = {kind for param in FALSIFICATIONS for kind in param.values[1]}  # type: ignore[union-attr] # a table
    others = {
        Kind.RECORD_NOT_STORED,
        Kind.CACHED_BALANCE,
        Kind.CACHED_VERSION,
        Kind.CACHED_WITHOUT_ACCOUNT,
    }
    assert shown | others == set(Kind) == set(SENTENCES)


async def test_a_price_id_in_another_notation_is_the_same_price(scratch: Scratch) -> None:
    await scratch.falsify(
        "UPDATE inference_record SET price_id = '{' || upper(replace(price_id, '-', '')) || '}'"
        " WHERE inference_id = 'a-1';"
        "UPDATE inference_record SET price_id = 'urn:uuid:' || price_id"
        " WHERE inference_id = 'a-2'"
    )
    assert await _counts(scratch) == {}


async def test_patience_with_pending_records_is_an_option(scratch: Scratch) -> None:
    await scratch.falsify(
        "UPDATE inference_record SET received_at = now() - interval '1 hour'"
        " WHERE inference_id = 'b-pending'"
    )
    assert await _counts(scratch, replace(OPTIONS, pending_limit_s=7_200)) == {}


async def test_findings_are_listed_up_to_a_bound_and_all_counted(scratch: Scratch) -> None:
    await scratch.falsify(
        "UPDATE usage_charge SET amount_usd = amount_usd + 1 WHERE amount_usd > 0"
    )
    report = await verify(scratch.settings, replace(OPTIONS, listed=2))
    assert report.counts[Kind.CHARGE_AMOUNT] == 5
    assert [finding.kind for finding in report.findings].count(Kind.CHARGE_AMOUNT) == 2


async def test_a_finding_says_which_what_is_due_and_what_is(scratch: Scratch) -> None:
    await scratch.falsify(
        "UPDATE usage_charge SET amount_usd = 7 WHERE inference_record_id = pg_temp.record('b-1')"
    )
    report: Report = await verify(scratch.settings, OPTIONS)
    finding = next(f for f in report.findings if f.kind is Kind.CHARGE_AMOUNT)
    assert (finding.team_id, finding.subject) == ("b", "record 5")
    assert (finding.due, finding.found) == ("0.000000825", "7")
