"""How many pods of a PodDisruptionBudget may be evicted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from allot.api.core import Pod
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.controllers.disruption.decisions import (
    DisruptedPods,
    PodCounts,
    budget_status,
    disrupted_pods,
    failed_status,
    needs_scale,
    pod_counts,
    stale_at,
)
from allot.testing.builders import a_pod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_budget(status: dict[str, Any] | None = None, **spec: Any) -> RawObject:
    metadata = {"name": "web", "namespace": "default", "generation": 3}
    return RawObject({"metadata": metadata, "spec": spec, "status": status or {}})


def counted_pod(
    name: str = "a", *, ready: bool = True, deleting: bool = False, **status: Any
) -> Pod:
    return a_pod(
        name,
        metadata={"deletionTimestamp": written_time(NOW)} if deleting else {},
        conditions={"Ready": str(ready)},
        status=status,
    )


@pytest.mark.parametrize(
    ("spec", "expected", "desired"),
    [
        pytest.param({"minAvailable": 2}, 3, 2, id="min"),
        pytest.param({"minAvailable": "50%"}, 3, 2, id="min-percent-rounds-up"),
        pytest.param({"maxUnavailable": 1}, 3, 2, id="max"),
        pytest.param({"maxUnavailable": "34%"}, 3, 1, id="max-percent-rounds-up"),
        pytest.param({"maxUnavailable": 5}, 3, 0, id="more-than-there-are"),
        pytest.param({}, 3, 0, id="neither"),
    ],
)
def test_desired_pods(spec: dict[str, Any], expected: int, desired: int) -> None:
    assert pod_counts(a_budget(**spec), expected) == PodCounts(expected, desired)


def test_a_number_of_available_pods_needs_no_owners() -> None:
    assert not needs_scale(a_budget(minAvailable=2))
    assert needs_scale(a_budget(minAvailable="20%"))
    assert needs_scale(a_budget(maxUnavailable=1))


def test_terminating_unready_and_evicted_pods_are_not_healthy() -> None:
    pods = [
        counted_pod("a"),
        counted_pod("b", ready=False),
        counted_pod("c", deleting=True),
        counted_pod("d"),
        counted_pod("e"),
    ]

    status = budget_status(
        a_budget(), pods, PodCounts(5, 1), DisruptedPods({"d": written_time(NOW)}), NOW
    )

    assert status["currentHealthy"] == 2
    assert status["disruptionsAllowed"] == 1
    assert status["observedGeneration"] == 3
    [condition] = status["conditions"]
    assert (condition["status"], condition["reason"]) == ("True", "SufficientPods")


def test_without_expected_pods_nothing_is_allowed() -> None:
    status = budget_status(a_budget(), [counted_pod()], PodCounts(0, 0), DisruptedPods({}), NOW)

    assert status["disruptionsAllowed"] == 0
    assert status["conditions"][0]["reason"] == "InsufficientPods"


def test_a_condition_keeps_the_time_of_its_last_transition() -> None:
    pods = [counted_pod()]
    first = budget_status(a_budget(), pods, PodCounts(1, 1), DisruptedPods({}), NOW)

    later = budget_status(
        a_budget(first), pods, PodCounts(1, 1), DisruptedPods({}), NOW + timedelta(hours=1)
    )

    assert later == first


def test_evicted_pods_are_waited_for_two_minutes() -> None:
    evicted = {
        "new": written_time(NOW - timedelta(seconds=30)),
        "stayed": written_time(NOW - timedelta(seconds=121)),
        "going": written_time(NOW),
        "gone": written_time(NOW),
    }
    pods = [
        counted_pod("new"),
        counted_pod("stayed"),
        counted_pod("going", deleting=True),
        counted_pod("other"),
    ]

    found = disrupted_pods(a_budget({"disruptedPods": evicted}), pods, NOW)

    assert found.since == {"new": evicted["new"]}
    assert [pod.metadata.name for pod in found.not_deleted] == ["stayed"]
    assert found.recheck_at == NOW + timedelta(seconds=90)


def test_a_failure_allows_nothing() -> None:
    status = failed_status(a_budget({"disruptionsAllowed": 2}), "no scale", NOW)

    assert status["disruptionsAllowed"] == 0
    [condition] = status["conditions"]
    assert (condition["reason"], condition["message"]) == ("SyncFailed", "no scale")


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [
        pytest.param({}, 120, id="target"),
        pytest.param({"reason": "TerminationByKubelet"}, None, id="by-the-kubelet"),
        pytest.param({"status": "False"}, None, id="no-longer"),
    ],
)
def test_targets_become_stale(pod: dict[str, str], seconds: int | None) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    condition |= {"lastTransitionTime": written_time(NOW), **pod}
    target = Pod({"metadata": {"name": "a"}, "status": {"conditions": [condition]}})

    assert stale_at(target) == (None if seconds is None else NOW + timedelta(seconds=seconds))
