"""Usage in every shape, per adapter: tokens by class, and their price to the last digit."""

from decimal import Decimal

import pytest
from unit.edge_proxy.recorded import FIXTURES, Recorded, recorded, scan

from contracts.usage import UsdPerMillion
from edge_proxy.domain.adapters import ADAPTERS
from edge_proxy.domain.adapters.adapter import Traits
from edge_proxy.domain.adapters.answer import Answer
from edge_proxy.domain.usage import Verdict
from kit.pricing import usage_cost_usd

PRICE = UsdPerMillion(
    input=Decimal(1),
    cache_read=Decimal("0.10"),
    cache_write_5m=Decimal("1.25"),
    cache_write_1h=Decimal(2),
    output=Decimal(4),
    reasoning=Decimal(4),
)
CASES = recorded()


def answer_of(case: Recorded) -> Answer:
    if not case.is_stream:
        answer = case.api.read_answer(case.body)
        assert answer is not None
        return answer
    scanner = case.scanner(hides_usage=True)
    scan(scanner, [case.body])
    assert (scanner.complete, scanner.failed) == (case.ends == "complete", case.ends == "failed")
    return scanner.answer


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_usage(case: Recorded) -> None:
    usage = answer_of(case).usage
    assert usage.verdict is Verdict(case.verdict)
    assert usage.chargeable == case.usage
    if usage.chargeable is not None:
        assert case.usd is not None
        assert usage_cost_usd(usage.chargeable, PRICE) == Decimal(case.usd)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_model_is_the_one_that_the_answer_names(case: Recorded) -> None:
    served = answer_of(case).model_served
    assert served is not None
    assert f'"{served}"'.encode() in case.body


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.verdict != "missing"], ids=lambda case: case.id
)
def test_the_providers_words_are_kept(case: Recorded) -> None:
    """Fields that nobody here knows as well: a person may have to judge them."""
    reported = answer_of(case).usage.reported
    assert reported is not None
    for field in ("cost", "queue_time", "server_tool_use", "num_sources_used", "inference_geo"):
        assert (f'"{field}"' in reported) == (f'"{field}"'.encode() in case.body), field


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_has_fixtures_for_every_endpoint_it_serves(adapter: str) -> None:
    found = {(case.endpoint, case.is_stream) for case in CASES if case.adapter == adapter}
    served = {path for path in ADAPTERS[adapter](Traits()).apis if path != "/v1/embeddings"}
    assert found >= {(path, is_stream) for path in served for is_stream in (True, False)}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_every_fixture_is_used(adapter: str) -> None:
    files = {path.name for path in (FIXTURES / adapter).iterdir()} - {"cases.toml"}
    assert files == {case.file for case in CASES if case.adapter == adapter}
