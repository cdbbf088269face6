"""Exports in the shapes that providers give them, and those that can't be read."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from quotagate.days import Days
from quotagate.reconcile import Measure, UsageFile, UsageFileError, read_usage_file

DAY = date(2026, 11, 30)


def _read(
    tmp_path: Path,
    text: str,
    columns: dict[str, str] | None = None,
    aliases: dict[str, str] | None = None,
    days: Days | None = None,
) -> UsageFile:
    path = tmp_path / "usage.csv"
    path.write_bytes(text.encode())
    return read_usage_file(path, columns or {}, aliases or {}, days)


READ = [
    pytest.param(
        "date,model,requests,input_tokens,cached_tokens,output_tokens,cost_usd\n"
        "2026-11-30,small,3,900,100,50,0.123\n",
        {"requests": "3", "input_tokens": "900", "cached_tokens": "100", "output_tokens": "50",
         "cost_usd": "0.123"},
        id="our own names",
    ),
    pytest.param(
        "output_tokens,model,num_model_requests,input_cached_tokens,input_tokens,start_time\n"
        "50,small,3,100,900,1796000400\n",
        {"requests": "3", "input_tokens": "900", "cached_tokens": "100", "output_tokens": "50"},
        id="names of OpenAI's usage API, unix seconds, another order",
    ),
    pytest.param(
        "starting_at,model,uncached_input_tokens,cache_read_input_tokens,"
        "cache_creation_input_tokens,output_tokens\n"
        "2026-11-30T00:00:00Z,small,800,100,7,50\n",
        {"uncached_input_tokens": "800", "cached_tokens": "100", "cache_write_tokens": "7",
         "output_tokens": "50"},
        id="names of Anthropic's usage API, an instant",
    ),
    pytest.param(
        'date,model,cost\n2026-11-30,small,$0.1\n2026-11-30,small,"$1,000.02"\n',
        {"cost_usd": "1000.12"},
        id="rows of one day and model are added, exactly",
    ),
    pytest.param(
        "\ufeffDate , Model ,Requests\r\n2026-11-30, small ,3\r\n",
        {"requests": "3"},
        id="a byte order mark, blanks, capitals, line ends of Windows",
    ),
    pytest.param(
        "date,model,requests\n2026-11-30,small,3\n2026-11-29,,0\n2026-11-28,,\n",
        {"requests": "3"},
        id="days without usage are no rows",
    ),
    pytest.param(
        "date,model,requests\n2026-12-01T00:30:00+02:00,small,3.0\n",
        {"requests": "3"},
        id="an instant of another zone",
    ),
    pytest.param(
        "date,model,requests,cost\n2026-11-30,small,3,1e-7\n",
        {"requests": "3", "cost_usd": "0.0000001"},
        id="an exponent",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), READ)
def test_an_export_is_read(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    usage = _read(tmp_path, text)
    assert usage.totals == {
        (DAY, "small"): {Measure(name): Decimal(value) for name, value in expected.items()}
    }
    assert usage.measures == tuple(measure for measure in Measure if measure.value in expected)


def test_columns_and_models_can_be_named(tmp_path: Path) -> None:
    usage = _read(
        tmp_path,
        "when,what,n,cost,amount\n2026-11-30,gpt-x-2026,3,9,0.5\n",
        columns={"date": "when", "model": "what", "requests": "n", "cost_usd": "amount"},
        aliases={"gpt-x-2026": "gpt-x"},
    )
    assert usage.totals == {
        (DAY, "gpt-x"): {Measure.REQUESTS: Decimal(3), Measure.COST_USD: Decimal("0.5")}
    }


def test_a_column_can_be_left_out(tmp_path: Path) -> None:
    usage = _read(
        tmp_path, "date,model,requests,cost\n2026-11-30,small,3,9\n", columns={"cost_usd": ""}
    )
    assert usage.measures == (Measure.REQUESTS,)


def test_other_days_are_left_out(tmp_path: Path) -> None:
    text = "date,model,requests\n" + "".join(f"2026-11-{n},small,1\n" for n in (28, 29, 30))
    usage = _read(tmp_path, text, days=Days(date(2026, 11, 29), date(2026, 11, 29)))
    assert list(usage.totals) == [(date(2026, 11, 29), "small")]
    assert usage.rows == 1


REFUSED = [
    pytest.param("", "no column is known as date", id="empty"),
    pytest.param("date,requests\n", "no column is known as model", id="no model"),
    pytest.param("date,model\n", "no column tells requests, tokens or costs", id="no numbers"),
    pytest.param(
        "date,day,model,requests\n", "date and day may both be date", id="two columns for one"
    ),
    pytest.param(
        "date,model,requests\n30.11.2026,small,3\n", "line 2: not a date: '30.11.2026'", id="date"
    ),
    pytest.param(
        "date,model,requests\n2026-11-30,small,many\n",
        "line 2: requests is not a number: 'many'",
        id="words for a number",
    ),
    pytest.param(
        "date,model,cost\n2026-11-30,small,NaN\n",
        "line 2: cost is not a number: 'NaN'",
        id="no number",
    ),
    pytest.param(
        'date,model,cost\n2026-11-30,small,"1,5"\n',
        "line 2: cost is not a number: '1,5'",
        id="a decimal comma",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_can_not_be_read_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageFileError) as caught:
        _read(tmp_path, text)
    assert said in str(caught.value)


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageFileError, match="no column 'amount'"):
        _read(tmp_path, "date,model,requests\n", columns={"cost_usd": "amount"})


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageFileError, match="No such file"):
        read_usage_file(tmp_path / "nowhere.csv", {}, {})


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "usage.csv"
    path.write_bytes(b"date,model,requests\n\xff\xfe,x,1\n")
    with pytest.raises(UsageFileError, match="utf-8"):
        read_usage_file(path, {}, {})
