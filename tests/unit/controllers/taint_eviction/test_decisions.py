"""How long pods may stay on tainted nodes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.api.core import Node, Pod
from allot.api.taints import read_tolerations, tolerates
from allot.controllers.taint_eviction.decisions import (
    NodeTaint,
    evicting_taints,
    leaves_at,
)
from allot.testing.builders import a_pod

T0 = datetime(2026, 1, 1, tzinfo=UTC)
BAD = NodeTaint("bad", "yes", T0)
WORSE = NodeTaint("worse", "", T0)


def after(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def tolerating(*tolerations: dict[str, Any], bound: str = "2025-12-01T00:00:00Z") -> Pod:
    return a_pod(
        tolerations=list(tolerations),
        metadata={"creationTimestamp": "2025-11-01T00:00:00Z"},
        conditions=[{"type": "PodScheduled", "status": "True", "lastTransitionTime": bound}],
    )


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "bad", "operator": "Exists"}, True),
        ({"key": "bad", "operator": "Equal", "value": "yes"}, True),
        ({"key": "bad", "value": "yes", "effect": "NoExecute"}, True),
        ({"key": "bad", "value": "no"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "bad", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "bad", "operator": "Gt", "value": "1"}, False),
    ],
)
def test_tolerations(toleration: dict[str, Any], fits: bool) -> None:
    (parsed,) = read_tolerations([toleration])
    assert tolerates(parsed, BAD) is fits


def for_(seconds: int | None, key: str = "bad") -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "tolerationSeconds": seconds}


@pytest.mark.parametrize(
    ("pod", "taints", "end"),
    [
        pytest.param(tolerating(), [], None, id="no-taint"),
        pytest.param(tolerating(), [(BAD, T0)], T0, id="not-tolerated"),
        pytest.param(tolerating(for_(None)), [(BAD, T0)], None, id="forever"),
        pytest.param(tolerating(for_(60)), [(BAD, T0)], after(60), id="for-a-while"),
        pytest.param(tolerating(for_(0)), [(BAD, T0)], T0, id="not-even-a-second"),
        pytest.param(
            tolerating(for_(60)), [(BAD, T0), (WORSE, after(9))], after(9), id="one-is-enough"
        ),
        pytest.param(
            tolerating(for_(60), for_(20, "worse")),
            [(BAD, T0), (WORSE, after(10))],
            after(30),
            id="the-first-that-ends",
        ),
        pytest.param(
            tolerating(for_(60), for_(None)), [(BAD, T0)], after(60), id="first-toleration"
        ),
        pytest.param(
            tolerating(for_(60), bound="2026-01-01T00:01:40Z"),
            [(BAD, T0)],
            after(160),
            id="came-later",
        ),
        pytest.param(
            tolerating(for_(2**62)),
            [(BAD, T0)],
            datetime.max.replace(tzinfo=UTC),
            id="longer-than-the-calendar",
        ),
    ],
)
def test_the_end(pod: Pod, taints: list[tuple[NodeTaint, datetime]], end: datetime | None) -> None:
    assert leaves_at(pod, taints) == end


def test_comparison_operators_tolerate_numeric_taints() -> None:
    sla = NodeTaint("sla", "950", T0)
    toleration = {"key": "sla", "operator": "Gt", "value": "900", "effect": "NoExecute"}

    assert leaves_at(tolerating(toleration), [(sla, T0)]) is None
    assert leaves_at(tolerating({**toleration, "operator": "Lt"}), [(sla, T0)]) == T0


def test_only_noexecute_taints_evict() -> None:
    taints = [
        {"key": "bad", "value": "yes", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
        {"key": "undated", "effect": "NoExecute"},
        {"key": "other", "effect": "NoSchedule"},
    ]
    node = Node({"spec": {"taints": taints}})
    assert evicting_taints(node) == (BAD, NodeTaint("undated", "", None))
