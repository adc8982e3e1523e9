from __future__ import annotations

from itertools import combinations, product

import pytest

from allot import features
from allot.features import FeatureGateError, FeatureGates, parse_feature_gates, with_overrides
from allot.rules import RULES, RuleSet

KEPS = (
    features.PRIORITIZED_LIST,
    features.CONSUMABLE_CAPACITY,
    features.BINDING_CONDITIONS,
    features.RESOURCE_POOL_STATUS,
    features.DERIVED_ATTRIBUTES,
)
BASE = (
    features.DYNAMIC_RESOURCE_ALLOCATION,
    features.DEVICE_STATUS,
    features.PARTITIONABLE_DEVICES,
    features.DEVICE_TAINTS,
    features.ADMIN_ACCESS,
    features.LIST_TYPE_ATTRIBUTES,
)


def test_the_five_keps_and_their_base_are_on() -> None:
    assert all(gate in features.DEFAULTS for gate in KEPS + BASE)


def test_kubernetes_has_fewer_on() -> None:
    assert features.DERIVED_ATTRIBUTES not in features.KUBERNETES_DEFAULTS
    assert features.CONSUMABLE_CAPACITY in features.KUBERNETES_DEFAULTS


def test_overrides() -> None:
    gates = with_overrides(
        parse_feature_gates("DRADerivedAttributes=false, DRADeviceCompatibilityGroups=true")
    )

    assert features.DERIVED_ATTRIBUTES not in gates
    assert features.COMPATIBILITY_GROUPS in gates


def test_all_of_a_stage() -> None:
    gates = with_overrides({"AllAlpha": False})

    assert features.DERIVED_ATTRIBUTES not in gates
    assert features.CONSUMABLE_CAPACITY in gates


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("Nope=true", "unknown feature gate 'Nope'; known gates: .*DRA", id="unknown"),
        pytest.param("DRADeviceTaints", "needs a value", id="no-value"),
        pytest.param("DRADeviceTaints=maybe", "not true or false", id="not-a-bool"),
        pytest.param("DRAAdminAccess=false", "locked to true", id="locked"),
        pytest.param(
            "DRADeviceTaints=false",
            "DRADeviceTaintRules needs DRADeviceTaints, which is off",
            id="dependency",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(FeatureGateError, match=message):
        with_overrides(parse_feature_gates(text))


def kubernetes_accepts(overrides: dict[str, bool]) -> bool:
    """Whether v1.38 starts with these gates, by its own defaults."""
    if features.locked_by_kubernetes(overrides):
        return False
    state = {gate.name: gate.kubernetes_default for gate in features.GATES.values()}
    for name, stage in features.ALL_BY_STAGE.items():
        if name in overrides:
            members = [g.name for g in features.GATES.values() if g.stage is stage and not g.locked]
            state |= dict.fromkeys(members, overrides[name])
    state |= {name: on for name, on in overrides.items() if name in features.GATES}
    return all(
        state[dependency]
        for gate in features.GATES.values()
        if state[gate.name]
        for dependency in gate.depends_on
    )


@pytest.mark.parametrize("rule_set", RuleSet)
@pytest.mark.parametrize("count", [1, 2])
def test_what_kubernetes_accepts_is_accepted(count: int, rule_set: RuleSet) -> None:
    """Gates that are on by our default only need not be named when their dependencies go off."""
    names = [*features.GATES, *features.ALL_BY_STAGE]
    tried = 0
    for chosen in combinations(names, count):
        for values in product((True, False), repeat=count):
            overrides = dict(zip(chosen, values, strict=True))
            if kubernetes_accepts(overrides):
                gates = with_overrides(overrides, rule_set)
                assert all(
                    (name in gates) == on
                    for name, on in overrides.items()
                    if name in features.GATES
                )
                tried += 1
    assert tried > len(features.GATES)


def test_what_is_on_by_our_default_goes_off_with_its_dependency() -> None:
    gates = with_overrides({features.CONSUMABLE_CAPACITY: False})

    assert features.FRACTIONAL_CAPACITY_RANGE not in gates
    assert features.FRACTIONAL_CAPACITY_RANGE not in gates.with_rules(RuleSet.V1_38)
    assert features.FRACTIONAL_CAPACITY_RANGE not in gates.with_rules(RuleSet.SEEDS)


@pytest.mark.parametrize("switch", [features.FRACTIONAL_CAPACITY_RANGE, "AllBeta"])
def test_what_was_asked_for_does_not_go_off_in_silence(switch: str) -> None:
    with pytest.raises(FeatureGateError, match="DRAFractionalCapacityRange needs DRAConsumable"):
        with_overrides(
            {switch: True, features.CONSUMABLE_CAPACITY: False, features.GENERIC_WORKLOAD: True}
        )


def test_every_dependency_is_a_gate() -> None:
    assert all(
        dependency in features.GATES
        for gate in features.GATES.values()
        for dependency in gate.depends_on
    )


def test_gates_compare_and_print() -> None:
    assert with_overrides({}) == features.DEFAULTS
    assert hash(with_overrides({})) == hash(features.DEFAULTS)
    assert "DRAAdminAccess" in repr(features.DEFAULTS)


def test_gates_are_a_set_of_those_that_are_on() -> None:
    gates = FeatureGates(("A", "B"))

    assert "A" in gates
    assert "C" not in gates
    assert gates.switched({"A": False, "C": True}) == FeatureGates(("B", "C"))


def test_the_switch_turns_all_rules() -> None:
    seeds = with_overrides({}, RuleSet.SEEDS)
    kubernetes = with_overrides({}, RuleSet.V1_38)

    assert all(rule in seeds for rule in RULES)
    assert not any(rule in kubernetes for rule in RULES)
    assert features.FRACTIONAL_CAPACITY_RANGE in seeds
    assert features.FRACTIONAL_CAPACITY_RANGE not in kubernetes
    assert seeds.with_rules(RuleSet.V1_38).with_rules(RuleSet.SEEDS) == seeds


def test_a_rule_is_not_a_feature_gate_that_users_set() -> None:
    with pytest.raises(FeatureGateError, match="unknown feature gate"):
        with_overrides({"SkipMissingClasses": False})


@pytest.mark.parametrize("name", [features.PRIORITIZED_LIST, features.DEVICE_STATUS])
def test_gates_that_a_kep_switches_off_are_locked_by_kubernetes_alone(name: str) -> None:
    depending = {gate.name: False for gate in features.GATES.values() if name in gate.depends_on}
    wanted = {name: False, **depending}

    assert name not in with_overrides(wanted)
    assert features.locked_by_kubernetes(wanted) == [name]
    assert features.locked_by_kubernetes({name: True}) == []
    with pytest.raises(FeatureGateError, match=f"{name} to false: it is locked to true"):
        with_overrides(wanted, RuleSet.V1_38)
