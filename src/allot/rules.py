"""Rules: differences between the KEPs and Kubernetes v1.38, and which behaviour is in force.

`RULES` lists every rule that changes a result; `docs/decisions/0003` explains them. The switch
`rules: seeds | v1.38` turns all of them on (`seeds`) or off (`v1.38`). Code checks a rule by name, in
the same set as the feature gates (`if SKIP_MISSING_CLASSES in gates`), so that both are passed together.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple


class RuleSet(StrEnum):
    """Which behaviour is in force where the KEPs and v1.38 differ."""

    SEEDS = "seeds"
    V1_38 = "v1.38"


NO_KEP: Final = 0


class Rule(NamedTuple):
    """One difference. `summary`: what allot does instead of v1.38, in one sentence."""

    name: str
    kep: int
    summary: str


# KEP-4816, prioritized alternatives
ALTERNATIVES_ON_ALL_NODES: Final = "AlternativesOnAllNodes"
SKIP_MISSING_CLASSES: Final = "SkipMissingClasses"
SKIP_INCOMPLETE_POOLS: Final = "SkipIncompletePools"
MIN_MAX_SCORES: Final = "MinMaxScores"

# KEP-4381 and KEP-5055, which the others build on
SLOW_NODES_ARE_SKIPPED: Final = "SlowNodesAreSkipped"
NO_SELECTOR_SELECTS_NOTHING: Final = "NoSelectorSelectsNothing"
LOCATED_ERRORS: Final = "LocatedErrors"
REPORT_MISSING_CLAIMS: Final = "ReportMissingClaims"

# KEP-5075, consumable capacity
SHARES_HOLD_DEDICATED_DEVICES: Final = "SharesHoldDedicatedDevices"
FRACTIONAL_RANGES_BY_DEFAULT: Final = "FractionalRangesByDefault"
CHECK_CONSUMED_CAPACITY: Final = "CheckConsumedCapacity"
MATCH_OR_DISTINCT: Final = "MatchOrDistinct"
BAD_CAPACITY_IS_NOT_ELIGIBLE: Final = "BadCapacityIsNotEligible"

# KEP-5007, binding conditions
READY_DEVICES_FIRST: Final = "ReadyDevicesFirst"
AVOID_FAILED_DEVICES: Final = "AvoidFailedDevices"
ONE_KIND_OF_BINDING_CONDITIONS: Final = "OneKindOfBindingConditions"
RELEASE_WAITING_PODS_WHEN_OFF: Final = "ReleaseWaitingPodsWhenOff"

# KEP-6080, derived attributes
DEVICE_NAME_IN_CEL: Final = "DeviceNameInCel"
BARE_DERIVED_NAMES: Final = "BareDerivedNames"
EIGHT_DERIVED_ATTRIBUTES: Final = "EightDerivedAttributes"
REJECT_DERIVED_ATTRIBUTES_WHEN_OFF: Final = "RejectDerivedAttributesWhenOff"
IGNORE_DERIVED_ATTRIBUTES_WHEN_OFF: Final = "IgnoreDerivedAttributesWhenOff"
EXPLAINED_COSTS: Final = "ExplainedCosts"

# KEP-5677, resource pool status
COUNT_LISTED_DEVICES_ONCE: Final = "CountListedDevicesOnce"
AVAILABLE_IS_ALLOCATABLE: Final = "AvailableIsAllocatable"
CROSS_SLICE_VALIDATION: Final = "CrossSliceValidation"
REPORT_INCOMPLETE_POOLS: Final = "ReportIncompletePools"
KEP_FIELDS_IN_V1ALPHA3: Final = "KepFieldsInV1alpha3"
SERVE_V1ALPHA1: Final = "ServeV1alpha1"
POOL_STATUS_NOT_SERVED_WHEN_OFF: Final = "PoolStatusNotServedWhenOff"
UNKNOWN_DRIVER_WARNING: Final = "UnknownDriverWarning"
EQUAL_COSTS_IN_ANY_COUNTER_SET: Final = "EqualCostsInAnyCounterSet"
ALL_SUMMARY_ERRORS: Final = "AllSummaryErrors"

# KEP-555, server-side apply
BAD_CONFIGURATION_IS_BAD_REQUEST: Final = "BadConfigurationIsBadRequest"

# The API server, whatever the feature
MISTAKES_ARE_UNPROCESSABLE: Final = "MistakesAreUnprocessable"

RULES: Final[Mapping[str, Rule]] = {
    rule.name: rule
    for rule in (
        Rule(
            ALTERNATIVES_ON_ALL_NODES,
            4816,
            "a pod with prioritized alternatives is tried on all nodes, not on a sample",
        ),
        Rule(
            SKIP_MISSING_CLASSES,
            4816,
            "an alternative whose device class does not exist is skipped",
        ),
        Rule(
            SKIP_INCOMPLETE_POOLS,
            4816,
            "an alternative in mode All that meets an incomplete or invalid pool is skipped",
        ),
        Rule(
            MIN_MAX_SCORES,
            4816,
            "scores of alternatives are spread from the worst node to the best, not from 0",
        ),
        Rule(
            SLOW_NODES_ARE_SKIPPED,
            4381,
            "a node on which allocation takes too long is skipped, and the others are still tried",
        ),
        Rule(
            NO_SELECTOR_SELECTS_NOTHING,
            5055,
            "a DeviceTaintRule without a deviceSelector taints nothing, also for the scheduler",
        ),
        Rule(
            LOCATED_ERRORS,
            4381,
            "a value of the wrong type is reported with its path, a JSON patch that fails with its operation",
        ),
        Rule(
            REPORT_MISSING_CLAIMS,
            4381,
            "a pod that waits for a claim that is missing or being deleted gets a condition and an event",
        ),
        Rule(
            SHARES_HOLD_DEDICATED_DEVICES,
            5075,
            "a device that is no longer shareable is in use while a claim holds a share of it",
        ),
        Rule(
            FRACTIONAL_RANGES_BY_DEFAULT,
            5075,
            "DRAFractionalCapacityRange is on by default",
        ),
        Rule(
            CHECK_CONSUMED_CAPACITY,
            5075,
            "a new allocation of a share states what it consumes, with a share ID of its own",
        ),
        Rule(
            MATCH_OR_DISTINCT,
            5075,
            "a constraint has matchAttribute or distinctAttribute, not both",
        ),
        Rule(
            BAD_CAPACITY_IS_NOT_ELIGIBLE,
            5075,
            "a device whose capacity cannot be computed is not eligible; the others still are",
        ),
        Rule(
            READY_DEVICES_FIRST,
            5007,
            "devices without binding conditions are tried before devices with them",
        ),
        Rule(
            AVOID_FAILED_DEVICES,
            5007,
            "a device whose binding failed is avoided for that pod for a while",
        ),
        Rule(
            ONE_KIND_OF_BINDING_CONDITIONS,
            5007,
            "a device may have bindingConditions without bindingFailureConditions",
        ),
        Rule(
            RELEASE_WAITING_PODS_WHEN_OFF,
            5007,
            "when the gate is switched off, in the scheduler or the API server, pods that wait get other devices",
        ),
        Rule(
            DEVICE_NAME_IN_CEL,
            6080,
            "expressions can read device.name",
        ),
        Rule(
            BARE_DERIVED_NAMES,
            6080,
            "a derived attribute may have a name without a domain",
        ),
        Rule(
            EIGHT_DERIVED_ATTRIBUTES,
            6080,
            "a request derives at most 8 attributes, not 32",
        ),
        Rule(
            REJECT_DERIVED_ATTRIBUTES_WHEN_OFF,
            6080,
            "derived attributes are rejected while their gate is off, not dropped",
        ),
        Rule(
            IGNORE_DERIVED_ATTRIBUTES_WHEN_OFF,
            6080,
            "the scheduler ignores stored derived attributes while their gate is off",
        ),
        Rule(
            EXPLAINED_COSTS,
            6080,
            "an expression that is too complex is refused once, with its estimated cost, the limit and advice",
        ),
        Rule(
            COUNT_LISTED_DEVICES_ONCE,
            5677,
            "a pool's figures count the devices that its slices list, each in one state",
        ),
        Rule(
            AVAILABLE_IS_ALLOCATABLE,
            5677,
            "tainted partitions and shares, and pools that allocation refuses, are not available",
        ),
        Rule(
            CROSS_SLICE_VALIDATION,
            5677,
            "slices of one pool that contradict each other are validation errors",
        ),
        Rule(
            REPORT_INCOMPLETE_POOLS,
            5677,
            "a request about an incomplete pool is answered after five seconds",
        ),
        Rule(
            KEP_FIELDS_IN_V1ALPHA3,
            5677,
            "v1alpha3 also has the KEP's short name and status fields; without observationTime a"
            " status is not final",
        ),
        Rule(
            SERVE_V1ALPHA1,
            5677,
            "ResourcePoolStatusRequests are also served in the KEP's version, v1alpha1",
        ),
        Rule(
            POOL_STATUS_NOT_SERVED_WHEN_OFF,
            5677,
            "ResourcePoolStatusRequests are not served while their gate is off",
        ),
        Rule(
            UNKNOWN_DRIVER_WARNING,
            5677,
            "a request about a driver without slices is answered with a warning",
        ),
        Rule(
            EQUAL_COSTS_IN_ANY_COUNTER_SET,
            5677,
            "partitions of one type may consume the counters of different counter sets",
        ),
        Rule(
            ALL_SUMMARY_ERRORS,
            5677,
            "an error about partitions does not hide one about shares, nor that one the partitions",
        ),
        Rule(
            BAD_CONFIGURATION_IS_BAD_REQUEST,
            555,
            "an applied configuration that does not fit the schema is answered with 400, not with 500",
        ),
        Rule(
            MISTAKES_ARE_UNPROCESSABLE,
            NO_KEP,
            "other mistakes of clients that are answered with 500 are answered with 422",
        ),
    )
}


def rules_of(rule_set: RuleSet) -> frozenset[str]:
    """The names of the rules in force."""
    return frozenset(RULES) if rule_set is RuleSet.SEEDS else frozenset()
