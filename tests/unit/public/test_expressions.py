"""`allot.compile`: expressions tried on devices that are plain values."""

from __future__ import annotations

from typing import Any

import pytest

import allot
from allot.api.semver import Semver

GPU = allot.Device(
    "gpu-0",
    driver="gpu.example.com",
    attributes={
        "model": "A100",
        "lanes": 16,
        "ecc": True,
        "firmware": Semver.parse("2.1.0"),
        "numa": (0, 1),
    },
    capacity={"memory": "80Gi"},
)
OTHER = allot.Device("nic-0", driver="nic.example.com")


@pytest.mark.parametrize(
    "expression",
    [
        'device.attributes["gpu.example.com"].model == "A100"',
        'device.attributes["gpu.example.com"].lanes >= 16',
        'device.attributes["gpu.example.com"].ecc',
        'device.attributes["gpu.example.com"].firmware.isGreaterThan(semver("2.0.0"))',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) == 0',
        '1 in device.attributes["gpu.example.com"].numa',
        'device.name == "gpu-0"',
    ],
)
def test_selects(expression: str) -> None:
    selector = allot.compile(expression)

    assert selector.matches(GPU)
    assert selector.select([GPU, OTHER]) == (GPU,)
    assert selector.cost(GPU) > 0
    assert selector.max_cost is not None


def test_failing_evaluation() -> None:
    selector = allot.compile('device.attributes["gpu.example.com"].model == "A100"')

    with pytest.raises(allot.CelEvaluationError, match="no such key"):
        selector.matches(OTHER)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('device.attributes["gpu.example.com"].model', "A100"),
        ('device.attributes["gpu.example.com"].lanes', 16),
        ('device.attributes["gpu.example.com"].ecc', True),
        ('device.attributes["gpu.example.com"].firmware', Semver.parse("2.1.0")),
        ('device.attributes["gpu.example.com"].numa', (0, 1)),
    ],
)
def test_derived_attributes(expression: str, value: Any) -> None:
    derived = allot.compile(expression, derived=True)

    assert derived(GPU) == value
    assert derived.is_derived
    with pytest.raises(TypeError, match="for selectors"):
        derived.matches(GPU)


def test_repr() -> None:
    selector = allot.compile("true && device.driver < 'x'")

    assert repr(selector) == "<Expression selector \"true && device.driver < 'x'\": bool>"
    assert selector._repr_html_() == (
        "<code>true &amp;&amp; device.driver &lt; &#x27;x&#x27;</code> : <code>bool</code>"
    )
    assert selector.source == "true && device.driver < 'x'"


def test_compile_error_names_the_place() -> None:
    with pytest.raises(allot.CelCompileError) as error:
        allot.compile("device.drver == 'x'")

    assert [issue.column for issue in error.value.issues] == [6]


def test_gates_decide_what_compiles() -> None:
    assert allot.compile("device.name == 'x'")
    with pytest.raises(allot.CelError, match="undefined field 'name'"):
        allot.compile("device.name == 'x'", rules="v1.38")
