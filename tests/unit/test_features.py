from __future__ import annotations

import pytest

from allot import features
from allot.features import FeatureGateError, parse_feature_gates, with_overrides
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
