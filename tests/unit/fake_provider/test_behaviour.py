"""Orders: what can be said, and that all of it is written down."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from fake_provider.behaviour import DEFAULT, Behaviour, decode, fake

_README = Path(__file__).parents[3] / "infra" / "fake-provider" / "README.md"


def test_no_orders_are_no_metadata() -> None:
    assert fake() == {}
    assert decode("") is DEFAULT


def test_orders_travel_as_strings_and_come_back() -> None:
    metadata = fake(marker="m", latency_ms=5, usage_shape="null", headers={"a": "b"})

    assert metadata["marker"] == "m"
    assert decode(metadata["fake"]) == Behaviour(
        latency_ms=5, usage_shape="null", headers={"a": "b"}
    )


def test_only_what_differs_from_the_default_is_written() -> None:
    assert fake(latency_ms=0, status=500) == {"fake": '{"status":500}'}


@pytest.mark.parametrize(
    "knobs",
    [
        pytest.param({"latencyms": 5}, id="no such knob"),
        pytest.param({"latency_ms": -1}, id="a negative time"),
        pytest.param({"latency_ms": "5"}, id="a number as a string"),
        pytest.param({"status": 99}, id="no status"),
        pytest.param({"usage_shape": "sideways"}, id="no such shape"),
    ],
)
def test_wrong_orders_fail_where_they_are_given(knobs: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        fake(**knobs)


@pytest.mark.parametrize("knob", [field.name for field in msgspec.structs.fields(Behaviour)])
def test_every_knob_is_documented(knob: str) -> None:
    assert f"`{knob}`" in _README.read_text(encoding="utf-8")
