"""Which toleration covers which taint."""

from __future__ import annotations

import pytest

from allot.api.resource import NO_EXECUTE, NO_SCHEDULE, DeviceTaint, DeviceToleration
from allot.api.taints import Taint, Toleration, tolerates

GPU_TAINT = Taint("gpu", "yes", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        pytest.param(Toleration("gpu", "Equal", "yes", "NoSchedule"), True, id="equal"),
        pytest.param(Toleration("gpu", "", "yes", ""), True, id="equal-is-the-default"),
        pytest.param(Toleration("gpu", "Equal", "no", ""), False, id="other-value"),
        pytest.param(Toleration("gpu", "Exists", "", "NoSchedule"), True, id="exists"),
        pytest.param(Toleration("", "Exists", "", ""), True, id="everything"),
        pytest.param(Toleration("gpu", "Exists", "", "NoExecute"), False, id="other-effect"),
        pytest.param(Toleration("tpu", "Exists", "", ""), False, id="other-key"),
        pytest.param(Toleration("gpu", "Gt", "1", ""), False, id="no-number"),
        pytest.param(Toleration("gpu", "Like", "yes", ""), False, id="unknown-operator"),
    ],
)
def test_toleration(toleration: Toleration, covered: bool) -> None:
    assert covered is tolerates(toleration, GPU_TAINT)


@pytest.mark.parametrize(
    ("operator", "covered"), [("Gt", True), ("Lt", False)], ids=["greater", "less"]
)
def test_numeric_toleration(operator: str, covered: bool) -> None:
    taint = Taint("sla", "950", "NoSchedule")

    toleration = Toleration("sla", operator, "900", "")
    assert covered is tolerates(toleration, taint)
    assert not tolerates(toleration, taint, comparison_operators=False)


DEVICE_TAINT = DeviceTaint("health", "bad", NO_SCHEDULE)


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        pytest.param(DeviceToleration("health", "Equal", "bad"), True, id="equal"),
        pytest.param(DeviceToleration("health", "", "bad"), True, id="equal-is-the-default"),
        pytest.param(DeviceToleration("health", "Equal", "good"), False, id="other-value"),
        pytest.param(DeviceToleration("health", "Exists"), True, id="exists"),
        pytest.param(DeviceToleration("", "Exists"), True, id="any-key"),
        pytest.param(DeviceToleration("other", "Exists"), False, id="other-key"),
        pytest.param(DeviceToleration("", "Exists", "", NO_EXECUTE), False, id="other-effect"),
        pytest.param(DeviceToleration("health", "Is", "bad"), False, id="unknown-operator"),
    ],
)
def test_device_toleration(toleration: DeviceToleration, covers: bool) -> None:
    assert tolerates(toleration, DEVICE_TAINT, comparison_operators=False) == covers
