"""What is declared where: gates, origins, return types, and our own `device.name`."""

from __future__ import annotations

import pytest

from allot.cel import CelCompileError, Origin, compile_derived, compile_selector
from allot.features import CONSUMABLE_CAPACITY, LIST_TYPE_ATTRIBUTES, FeatureGates
from allot.rules import RuleSet

NONE = FeatureGates(())
SEEDS = NONE.with_rules(RuleSet.SEEDS)
LISTS = FeatureGates((LIST_TYPE_ATTRIBUTES,))
CAPACITY = FeatureGates((CONSUMABLE_CAPACITY,))

LOOP = 'device.attributes["d"].x.exists(e, e == 1)'


@pytest.mark.parametrize(
    ("expression", "origin", "gates", "compiles"),
    [
        pytest.param(LOOP, Origin.NEW, NONE, False, id="loop-needs-list-attributes"),
        pytest.param(LOOP, Origin.NEW, LISTS, True, id="loop-over-list-attributes"),
        pytest.param(LOOP, Origin.STORED, NONE, True, id="stored-ignores-gates"),
        pytest.param("[1].includes(1)", Origin.NEW, NONE, False, id="includes-needs-the-gate"),
        pytest.param("[1].includes(1)", Origin.NEW, LISTS, True, id="includes-with-gate"),
        pytest.param("device.allowMultipleAllocations", Origin.NEW, NONE, False, id="shared-gate"),
        pytest.param("device.allowMultipleAllocations", Origin.NEW, CAPACITY, True, id="shared"),
        pytest.param('device.name == "gpu-0"', Origin.NEW, SEEDS, True, id="our-device-name"),
        pytest.param('device.name == "gpu-0"', Origin.STORED, NONE, True, id="stored-device-name"),
        pytest.param('device.name == "gpu-0"', Origin.NEW, NONE, False, id="not-in-v1.38"),
        pytest.param("device.pool == 'x'", Origin.STORED, NONE, False, id="no-pool"),
        pytest.param("math.abs(1) == 1", Origin.STORED, NONE, False, id="no-math"),
    ],
)
def test_what_compiles(
    expression: str, origin: Origin, gates: FeatureGates, compiles: bool
) -> None:
    if compiles:
        compile_selector(expression, origin, gates)
    else:
        with pytest.raises(CelCompileError, match="compilation failed"):
            compile_selector(expression, origin, gates)


@pytest.mark.parametrize(
    ("expression", "gates", "problem"),
    [
        pytest.param("[1]", LISTS, None, id="list"),
        pytest.param("[1]", NONE, "semver), not list(int)", id="list-without-gate"),
        pytest.param("[1.0]", LISTS, "list of these scalars, not list(double)", id="doubles"),
        pytest.param("1u", LISTS, "not uint", id="uint"),
        pytest.param('device.attributes["d"].x', NONE, None, id="any"),
        pytest.param("{'a': 1}", LISTS, "not map(string, int)", id="map"),
    ],
)
def test_types_of_derived_attributes(
    expression: str, gates: FeatureGates, problem: str | None
) -> None:
    if problem is None:
        compile_derived(expression, Origin.NEW, gates)
    else:
        with pytest.raises(CelCompileError) as raised:
            compile_derived(expression, Origin.NEW, gates)
        assert raised.value.text.endswith(problem)
        assert not raised.value.internal


def test_bad_constants_are_internal_errors() -> None:
    with pytest.raises(CelCompileError) as raised:
        compile_derived('int("x")')

    assert raised.value.internal
    assert raised.value.text.startswith("program instantiation failed: ")


def test_programs_are_cached_per_environment() -> None:
    assert compile_selector("true") is compile_selector("true")
    stored = compile_selector('device.attributes["d"].x', Origin.STORED)
    new = compile_selector('device.attributes["d"].x', Origin.NEW, NONE)
    assert (str(stored.output_type), str(new.output_type)) == ("dyn", "google.protobuf.Any")
