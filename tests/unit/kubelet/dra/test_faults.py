"""The annotation that makes drivers fail."""

from __future__ import annotations

import math

import pytest

from allot.kubelet.dra.faults import FaultSyntaxError, NodeFaults, parse_faults
from allot.kubelet.dra.health import HealthStatus


def test_faults_by_driver() -> None:
    found = parse_faults(
        "a.example.com prepare-fails=2 unprepare-hangs; b.example.com gone; "
        "* prepare-seconds=1.5 unhealthy=gpu-0,gpu-1 healthy=gpu-2;"
    )

    assert found["a.example.com"].prepare.failures == 2
    assert found["a.example.com"].unprepare.hangs
    assert found["b.example.com"].is_gone
    assert found["*"].prepare.seconds == 1.5
    assert found["*"].health_by_device == {
        "gpu-0": HealthStatus.UNHEALTHY,
        "gpu-1": HealthStatus.UNHEALTHY,
        "gpu-2": HealthStatus.HEALTHY,
    }
    assert parse_faults("a prepare-fails")["a"].prepare.failures == math.inf


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a.example.com", "has no fault", id="none"),
        pytest.param("a.example.com prepare-fail=1", "is not a fault; available", id="misspelled"),
        pytest.param("a prepare-fails=many", "'many' is not a number", id="number"),
        pytest.param("a prepare-seconds=-1", "is not a number", id="negative"),
        pytest.param("a prepare-seconds=", "is not a number", id="missing"),
        pytest.param("a prepare-hangs=1", "no value", id="value"),
        pytest.param("a gone=1", "is not a fault", id="gone"),
        pytest.param("a unhealthy", "is not a fault", id="devices"),
    ],
)
def test_mistakes_are_named(text: str, problem: str) -> None:
    with pytest.raises(FaultSyntaxError, match=problem):
        parse_faults(text)


def test_a_count_starts_again_only_with_another_value() -> None:
    faults = NodeFaults()
    assert faults.read("a prepare-fails=1")
    first = faults.of("a")
    assert not faults.read("a prepare-fails=1")
    assert faults.of("a") is first
    assert faults.of("b") is None
    assert faults.read("")
    assert faults.of("a") is None
