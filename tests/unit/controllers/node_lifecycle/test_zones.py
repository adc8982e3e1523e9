"""How many nodes may be given up at once."""

from __future__ import annotations

import pytest

from allot.controllers.node_lifecycle.zones import (
    EXCLUDED,
    EvictionRates,
    ZoneCount,
    Zones,
    ZoneState,
    eviction_rate,
    zone_state,
)
from allot.testing.builders import a_node

RATES = EvictionRates()


@pytest.mark.parametrize(
    ("ready", "unready", "state", "rate"),
    [
        pytest.param(3, 0, ZoneState.NORMAL, 0.1, id="all-well"),
        pytest.param(1, 2, ZoneState.NORMAL, 0.1, id="two-lost-are-not-many"),
        pytest.param(3, 3, ZoneState.NORMAL, 0.1, id="half"),
        pytest.param(2, 3, ZoneState.PARTIAL, 0.0, id="most-of-a-small-zone"),
        pytest.param(20, 31, ZoneState.PARTIAL, 0.01, id="most-of-a-large-zone"),
        pytest.param(0, 1, ZoneState.FULL, 0.1, id="all-lost"),
        pytest.param(0, 0, ZoneState.NORMAL, 0.1, id="empty"),
    ],
)
def test_rates(ready: int, unready: int, state: ZoneState, rate: float) -> None:
    count = ZoneCount(ready, unready)
    assert zone_state(count, RATES) is state
    assert eviction_rate(count, RATES) == rate


def zone(name: str) -> dict[str, str]:
    return {"topology.kubernetes.io/zone": name}


def test_nodes_are_counted_as_they_change() -> None:
    zones = Zones()
    assert not zones.are_all_lost()
    zones.put(a_node("a", labels=zone("east")), ready=False)
    assert zones.are_all_lost()
    zones.put(a_node("b", labels=zone("west")), ready=True)
    assert not zones.are_all_lost()
    assert zones.count("::east") == ZoneCount(0, 1)
    zones.put(a_node("a", labels=zone("west")), ready=True)
    assert zones.count("::east") == ZoneCount(0, 0)
    assert zones.count("::west") == ZoneCount(2, 0)
    zones.put(a_node("c", labels={EXCLUDED: ""}), ready=True)
    assert zones.count("") == ZoneCount(0, 0)
    zones.put(a_node("b", labels=zone("west")), ready=False)
    zones.drop("a")
    assert zones.are_all_lost()
