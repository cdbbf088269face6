"""Plans are drawn from a seed alone, and the tour leaves nothing out."""

import pytest
from faults.strikes.fault import CRASH_POINTS, PROGRAMS, WIRES, Fault, Kind, wires
from faults.strikes.plan import drawn, tour


def test_the_same_seed_gives_the_same_faults() -> None:
    assert drawn(7, 300) == drawn(7, 300)
    assert drawn(7, 300) != drawn(8, 300)
    assert tour(7) == tour(7)


def test_a_long_plan_leaves_out_no_kind_and_no_crash_point() -> None:
    faults = drawn(1, 2_000)
    assert {fault.kind for fault in faults} == set(Kind)
    assert {fault.target for fault in faults if fault.kind is Kind.CRASH} == set(CRASH_POINTS)
    assert set(PROGRAMS) | set(WIRES) <= {fault.target for fault in faults}


def test_the_tour_leaves_out_no_kind_and_no_crash_point() -> None:
    faults = tour(1)
    assert {fault.kind for fault in faults} == set(Kind)
    points = [fault.target for fault in faults if fault.kind is Kind.CRASH]
    assert sorted(points) == sorted(CRASH_POINTS)


def test_every_wire_leads_somewhere() -> None:
    assert len(set(WIRES)) == len(WIRES)
    assert wires("admission*>valkey") == ["admission>valkey", "admission-2>valkey"]
    assert all(wires(fault.target) for fault in drawn(2, 500) if ">" in fault.target)


@pytest.mark.parametrize(
    ("fault", "store_unknown", "delays_dispatch"),
    [
        pytest.param(Fault(Kind.FREEZE, "valkey", 3), True, False, id="the store is frozen"),
        pytest.param(Fault(Kind.STOP, "valkey", 3), True, False, id="the store is away"),
        pytest.param(
            Fault(Kind.LOSE_REPLIES, "admission*>valkey", 3), True, False, id="nobody hears of it"
        ),
        pytest.param(
            Fault(Kind.LOSE, "admission>valkey", 3), False, False, id="one admission can't ask"
        ),
        pytest.param(
            Fault(Kind.DELAY, "admission*>valkey", 3), False, False, id="the store is slow"
        ),
        pytest.param(Fault(Kind.KILL, "valkey"), False, False, id="the store comes back at once"),
        pytest.param(Fault(Kind.FREEZE, "edge-proxy-2", 1), False, True, id="an edge is frozen"),
        pytest.param(
            Fault(Kind.HOLD, "edge-proxy>fake-provider", 1), False, True, id="dispatches are held"
        ),
        pytest.param(
            Fault(Kind.HOLD, "clients>edge-proxy", 1), False, False, id="requests aren't there yet"
        ),
    ],
)
def test_what_a_fault_means_to_a_witness(
    fault: Fault, store_unknown: bool, delays_dispatch: bool
) -> None:
    assert (fault.store_unknown, fault.delays_dispatch) == (store_unknown, delays_dispatch)


def test_what_is_evidence_outlasts_what_was_on_its_way() -> None:
    evidence = [fault for fault in drawn(3, 1_000) if fault.store_unknown]
    assert evidence
    assert all(fault.duration_s >= 2.5 for fault in evidence)
