"""What LimitRanges make of pods with very many containers, and the work it takes."""

from __future__ import annotations

from typing import Any

import pytest

from allot.api.raw import RawObject
from allot.quota import limit_ranges
from allot.quota.amounts import Amounts, read_amounts
from allot.quota.limit_ranges import (
    ANNOTATION,
    TooManyChecksError,
    pod_problems,
    with_default_resources,
)
from tests.step_counts import steps


def a_pod(count: int, **resources: Any) -> RawObject:
    containers = [{"name": f"c{number}", "resources": resources} for number in range(count)]
    return RawObject({"metadata": {"name": "p"}, "spec": {"containers": containers}})


def a_range(*limits: dict[str, Any]) -> RawObject:
    return RawObject({"metadata": {"name": "r"}, "spec": {"limits": list(limits)}})


def test_defaults_are_counted() -> None:
    defaults = {"type": "Container", "default": {"cpu": "1", "memory": "1Mi"}}
    filled = with_default_resources(a_pod(3), [a_range(defaults)])

    assert filled.added == 6
    assert filled.pod.get("spec", "containers")[2]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Mi"}
    }
    assert filled.pod.get("metadata", "annotations")[ANNOTATION] == (
        "LimitRanger plugin set: cpu, memory limit for container c0; "
        "cpu, memory limit for container c1; cpu, memory limit for container c2"
    )
    assert with_default_resources(filled.pod, [a_range(defaults)]) == (filled.pod, 0)


def test_a_pod_that_is_invalid_anyway_is_not_filled_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thousands of defaults for thousands of containers would be more than the memory can hold."""
    monkeypatch.setattr(limit_ranges, "MAX_NOTES", 100)
    defaults = {"type": "Container", "default": {f"a.b/{number}": "1" for number in range(10)}}

    def added(containers: int) -> int:
        return with_default_resources(a_pod(containers), [a_range(defaults)]).added

    assert added(1) == 10
    assert added(100) == added(1000) == 20


def test_containers_and_limits_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What remains is a comparison for each limit of each container."""
    count = 0

    def noticing(raw: Any) -> Amounts:
        nonlocal count
        count += 1
        return read_amounts(raw)

    monkeypatch.setattr(limit_ranges, "read_amounts", noticing)
    limits = a_range(*[{"type": "Container", "max": {"cpu": "2"}}] * 10)

    assert not pod_problems(a_pod(20, limits={"cpu": "1"}), [limits])
    assert count == 20 * 2 + 10 * 3


def test_the_peak_of_a_pod_is_computed_once() -> None:
    pod = a_pod(50, limits={"cpu": "1m"})
    ranges = [a_range({"type": "Pod", "max": {"cpu": "1"}})] * 10

    assert not pod_problems(pod, ranges)
    assert steps(lambda: pod_problems(pod, ranges)) < 2 * steps(
        lambda: pod_problems(pod, ranges[:1])
    )


def test_too_many_checks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit_ranges, "MAX_CHECKS", 100)
    limits = a_range({"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "1"}})

    assert not pod_problems(a_pod(30, limits={"cpu": "1"}, requests={"cpu": "1"}), [limits])
    with pytest.raises(TooManyChecksError):
        pod_problems(a_pod(40, limits={"cpu": "1"}, requests={"cpu": "1"}), [limits])
