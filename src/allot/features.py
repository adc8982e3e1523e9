"""Feature gates: which parts of DRA are switched on.

`GATES` lists every gate with its stage, Kubernetes v1.38's default and ours: the gates of the five
KEPs that allot implements, and of the features those build on, are on; those that are off in
v1.38 go off together with what they depend on. `FeatureGates` also holds the rules (`allot.rules`)
that are in force, because whatever asks for a gate may ask for a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, Self

from allot.rules import FRACTIONAL_RANGES_BY_DEFAULT, RULES, RuleSet, rules_of


class Stage(StrEnum):
    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = "GA"


class Gate(NamedTuple):
    """One feature gate. `default` is ours, `kubernetes_default` is what v1.38 does."""

    name: str
    stage: Stage
    default: bool
    kubernetes_default: bool
    locked: bool = False
    """Whether v1.38 refuses to switch it."""
    depends_on: tuple[str, ...] = ()
    is_implemented: bool = True
    """False: it can be switched on, as in v1.38, and at most its fields are kept."""
    is_switched_by_kep: bool = False
    """Whether a KEP says how to switch it off: with the rules `seeds` that is possible although v1.38 locks it."""

    def is_locked(self, rule_set: RuleSet) -> bool:
        return self.locked and not (self.is_switched_by_kep and rule_set is RuleSet.SEEDS)


DYNAMIC_RESOURCE_ALLOCATION: Final = "DynamicResourceAllocation"
ADMIN_ACCESS: Final = "DRAAdminAccess"
PRIORITIZED_LIST: Final = "DRAPrioritizedList"
DEVICE_STATUS: Final = "DRAResourceClaimDeviceStatus"
EXTENDED_RESOURCE: Final = "DRAExtendedResource"
DEVICE_TAINTS: Final = "DRADeviceTaints"
DEVICE_TAINT_RULES: Final = "DRADeviceTaintRules"
CONSUMABLE_CAPACITY: Final = "DRAConsumableCapacity"
FRACTIONAL_CAPACITY_RANGE: Final = "DRAFractionalCapacityRange"
BINDING_CONDITIONS: Final = "DRADeviceBindingConditions"
PARTITIONABLE_DEVICES: Final = "DRAPartitionableDevices"
PARTITIONABLE_DEVICES_TYPE: Final = "DRAPartitionableDevicesType"
COMPATIBILITY_GROUPS: Final = "DRADeviceCompatibilityGroups"
GRANULAR_STATUS_AUTHORIZATION: Final = "DRAResourceClaimGranularStatusAuthorization"
SCHEDULER_FILTER_TIMEOUT: Final = "DRASchedulerFilterTimeout"
DERIVED_ATTRIBUTES: Final = "DRADerivedAttributes"
LIST_TYPE_ATTRIBUTES: Final = "DRAListTypeAttributes"
NODE_ALLOCATABLE_RESOURCES: Final = "DRANodeAllocatableResources"
OPTIONAL_NODE_OPERATIONS: Final = "DRAOptionalNodeOperations"
RESOURCE_POOL_STATUS: Final = "DRAResourcePoolStatus"
WORKLOAD_RESOURCE_CLAIMS: Final = "DRAWorkloadResourceClaims"
RESOURCE_HEALTH_STATUS: Final = "ResourceHealthStatus"
RESOURCE_HEALTH_STATUS_MESSAGE: Final = "ResourceHealthStatusMessage"
NODE_DECLARED_FEATURES: Final = "NodeDeclaredFeatures"
GENERIC_WORKLOAD: Final = "GenericWorkload"

_DRA = (DYNAMIC_RESOURCE_ALLOCATION,)

GATES: Final[Mapping[str, Gate]] = {
    gate.name: gate
    for gate in (
        Gate(DYNAMIC_RESOURCE_ALLOCATION, Stage.GA, True, True, locked=True),
        Gate(ADMIN_ACCESS, Stage.GA, True, True, locked=True, depends_on=_DRA),
        Gate(
            PRIORITIZED_LIST,
            Stage.GA,
            True,
            True,
            locked=True,
            depends_on=_DRA,
            is_switched_by_kep=True,
        ),
        Gate(DEVICE_STATUS, Stage.GA, True, True, locked=True, is_switched_by_kep=True),
        Gate(EXTENDED_RESOURCE, Stage.GA, True, True, locked=True, depends_on=_DRA),
        Gate(DEVICE_TAINTS, Stage.GA, True, True, depends_on=_DRA),
        Gate(DEVICE_TAINT_RULES, Stage.GA, True, True, depends_on=(DEVICE_TAINTS,)),
        Gate(CONSUMABLE_CAPACITY, Stage.BETA, True, True, depends_on=_DRA),
        Gate(FRACTIONAL_CAPACITY_RANGE, Stage.BETA, True, False, depends_on=(CONSUMABLE_CAPACITY,)),
        Gate(BINDING_CONDITIONS, Stage.BETA, True, True, depends_on=(*_DRA, DEVICE_STATUS)),
        Gate(PARTITIONABLE_DEVICES, Stage.BETA, True, True, depends_on=_DRA),
        Gate(
            GRANULAR_STATUS_AUTHORIZATION,
            Stage.BETA,
            True,
            True,
            depends_on=(*_DRA, DEVICE_STATUS),
        ),
        Gate(SCHEDULER_FILTER_TIMEOUT, Stage.BETA, True, True, depends_on=_DRA),
        Gate(DERIVED_ATTRIBUTES, Stage.ALPHA, True, False, depends_on=_DRA),
        Gate(
            COMPATIBILITY_GROUPS,
            Stage.ALPHA,
            False,
            False,
            depends_on=(*_DRA, PARTITIONABLE_DEVICES),
        ),
        Gate(LIST_TYPE_ATTRIBUTES, Stage.ALPHA, True, False, depends_on=_DRA),
        Gate(
            NODE_ALLOCATABLE_RESOURCES,
            Stage.ALPHA,
            False,
            False,
            depends_on=_DRA,
            is_implemented=False,
        ),
        Gate(
            OPTIONAL_NODE_OPERATIONS,
            Stage.ALPHA,
            False,
            False,
            depends_on=(*_DRA, NODE_DECLARED_FEATURES),
        ),
        Gate(
            PARTITIONABLE_DEVICES_TYPE,
            Stage.ALPHA,
            False,
            False,
            depends_on=(*_DRA, PARTITIONABLE_DEVICES, RESOURCE_POOL_STATUS),
        ),
        Gate(RESOURCE_POOL_STATUS, Stage.ALPHA, True, False, depends_on=_DRA),
        Gate(
            WORKLOAD_RESOURCE_CLAIMS,
            Stage.BETA,
            False,
            False,
            depends_on=(*_DRA, GENERIC_WORKLOAD),
            is_implemented=False,
        ),
        Gate(RESOURCE_HEALTH_STATUS, Stage.BETA, True, True, depends_on=_DRA),
        Gate(
            RESOURCE_HEALTH_STATUS_MESSAGE,
            Stage.BETA,
            True,
            True,
            depends_on=(RESOURCE_HEALTH_STATUS,),
        ),
        # Not DRA, but some of the gates above need them.
        Gate(NODE_DECLARED_FEATURES, Stage.BETA, True, True),
        Gate(GENERIC_WORKLOAD, Stage.ALPHA, False, False, is_implemented=False),
    )
}

DEFAULT_RULES: Final = {FRACTIONAL_CAPACITY_RANGE: FRACTIONAL_RANGES_BY_DEFAULT}
"""Gates that are on by default because of a rule, and off without it."""

ALL_BY_STAGE: Final = {"AllAlpha": Stage.ALPHA, "AllBeta": Stage.BETA}


class FeatureGateError(ValueError):
    """Unknown gates, locked gates or gates with unmet dependencies."""


class FeatureGates(frozenset[str]):
    """The gates that are on and the rules in force: `if CONSUMABLE_CAPACITY in gates`."""

    _follow_rules: frozenset[str]
    __slots__ = ("_follow_rules",)

    def __new__(cls, enabled: Iterable[str], follow_rules: Iterable[str] = ()) -> Self:
        """Exactly these gates and rules, unchecked: `with_overrides` is for what users ask for.

        Without a rule among them the answers are those of Kubernetes v1.38. `follow_rules` are
        gates that were not asked for and whose default is a rule.
        """
        gates = super().__new__(cls, enabled)
        gates._follow_rules = frozenset(follow_rules)
        return gates

    @property
    def rule_set(self) -> RuleSet:
        """Which rule set is in force: `seeds` if all rules are."""
        return RuleSet.SEEDS if self >= RULES.keys() else RuleSet.V1_38

    def switched(self, states: Mapping[str, bool]) -> FeatureGates:
        """These gates with some switched on or off, unchecked as in `__new__`."""
        on = {name for name, state in states.items() if state}
        return FeatureGates((self - states.keys()) | on, self._follow_rules - states.keys())

    def with_rules(self, rule_set: RuleSet) -> FeatureGates:
        """The same gates under other rules, and with other defaults where those are rules."""
        rules = rules_of(rule_set)
        defaults = {gate for gate in self._follow_rules if DEFAULT_RULES[gate] in rules}
        kept = self - RULES.keys() - self._follow_rules
        return FeatureGates(kept | rules | defaults, self._follow_rules)

    def __repr__(self) -> str:
        return f"FeatureGates({sorted(self)})"


def parse_feature_gates(text: str) -> dict[str, bool]:
    """What `--feature-gates A=true,B=false` asks for."""
    wanted: dict[str, bool] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise FeatureGateError(
                f"feature gate {name!r} needs a value: {name}=true or {name}=false"
            )
        match value.lower():
            case "true" | "t" | "1":
                wanted[name] = True
            case "false" | "f" | "0":
                wanted[name] = False
            case _:
                raise FeatureGateError(f"feature gate {name}={value!r}: not true or false")
    return wanted


def with_overrides(
    overrides: Mapping[str, bool], rule_set: RuleSet = RuleSet.SEEDS
) -> FeatureGates:
    """Our defaults with `overrides` applied; `FeatureGateError` if that cannot be."""
    unknown = [name for name in overrides if name not in GATES and name not in ALL_BY_STAGE]
    if unknown:
        known = ", ".join(sorted([*GATES, *ALL_BY_STAGE]))
        raise FeatureGateError(
            f"unknown feature gate {', '.join(map(repr, sorted(unknown)))}; known gates: {known}"
        )
    rules = rules_of(rule_set)
    state = {name: gate.default for name, gate in GATES.items()}
    state |= {gate: rule in rules for gate, rule in DEFAULT_RULES.items()}
    for name, stage in ALL_BY_STAGE.items():
        if name in overrides:
            state |= {
                gate.name: overrides[name]
                for gate in GATES.values()
                if gate.stage is stage and not gate.locked
            }
    for name, value in overrides.items():
        gate = GATES.get(name)
        if gate is None:
            continue
        if gate.is_locked(rule_set) and value != gate.default:
            raise FeatureGateError(
                f"cannot set feature gate {name} to {str(value).lower()}: "
                f"it is locked to {str(gate.default).lower()}"
            )
        state[name] = value
    stages = {ALL_BY_STAGE[name] for name in overrides if name in ALL_BY_STAGE}
    not_asked_for = {
        name
        for name, gate in GATES.items()
        if name not in overrides and (gate.locked or gate.stage not in stages)
    }
    switched_off = _switch_off_own_defaults(state, not_asked_for)
    _refuse_broken_dependencies(state)
    by_default = (DEFAULT_RULES.keys() & not_asked_for) - switched_off
    return FeatureGates({name for name, on in state.items() if on} | rules, by_default)


def locked_by_kubernetes(overrides: Mapping[str, bool]) -> list[str]:
    """Which of the wanted gates Kubernetes v1.38 would refuse to switch."""
    return [
        name
        for name, value in overrides.items()
        if (gate := GATES.get(name)) is not None and gate.locked and value != gate.default
    ]


def not_implemented(gates: FeatureGates) -> list[str]:
    """The gates that are on and that allot does not implement."""
    return [gate.name for gate in GATES.values() if gate.name in gates and not gate.is_implemented]


def _switch_off_own_defaults(state: dict[str, bool], not_asked_for: set[str]) -> set[str]:
    """The gates that were switched off in `state` because what they need is off.

    Only gates that are on by our default and off by that of Kubernetes: a user who switches a gate off
    as for Kubernetes does not have to know them.
    """
    own = [
        gate
        for gate in GATES.values()
        if gate.default and not gate.kubernetes_default and gate.name in not_asked_for
    ]
    switched_off: set[str] = set()
    while broken := {
        gate.name for gate in own if state[gate.name] and not all(map(state.get, gate.depends_on))
    }:
        state |= dict.fromkeys(broken, False)
        switched_off |= broken
    return switched_off


def _refuse_broken_dependencies(state: Mapping[str, bool]) -> None:
    broken = [
        f"{gate.name} needs {dependency}, which is off"
        for gate in GATES.values()
        if state[gate.name]
        for dependency in gate.depends_on
        if not state[dependency]
    ]
    if broken:
        raise FeatureGateError("; ".join(broken))


DEFAULTS: Final = with_overrides({})
"""The gates and rules in force by default."""

KUBERNETES_DEFAULTS: Final = FeatureGates(
    gate.name for gate in GATES.values() if gate.kubernetes_default
)
