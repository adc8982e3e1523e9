"""Every rule of lint: its id, severity, title and help.

Ids are stable: they are arguments of `--ignore`, and code hosts group findings by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from allot.lint.findings import UNREADABLE_ID, Rule, Severity
from allot.validation.fields import ErrorType

_E, _W = Severity.ERROR, Severity.WARNING

# --- the API server's answers ---

UNREADABLE: Final = Rule(
    UNREADABLE_ID,
    _E,
    "the input is not YAML or JSON, or not an object",
    "Correct the syntax at the place shown. Nothing else in this document was checked.",
)
INVALID_HARDWARE: Final = Rule(
    "invalid-hardware",
    _E,
    "a hardware description that `allot up --hardware` refuses",
    "Correct the field that the message names. Of each description the first error is shown.",
)
UNKNOWN_KIND: Final = Rule(
    "unknown-kind",
    _E,
    "apiVersion or kind is missing or not served",
    "Write an apiVersion and kind of resource.k8s.io that the message lists.",
)
UNKNOWN_FIELD: Final = Rule(
    "unknown-field",
    _E,
    "the field does not exist",
    "The API server drops or refuses unknown fields. Use the suggested name or remove the field. "
    "`--fix` corrects a typo that has one candidate.",
)
MOVED_FIELD: Final = Rule(
    "moved-field",
    _E,
    "the field is elsewhere in this API version",
    "In resource.k8s.io/v1 the fields of a request are under `exactly`, and those of a device are "
    "not under `basic`. `--fix` moves them.",
)
DUPLICATE_FIELD: Final = Rule(
    "duplicate-field",
    _E,
    "a key occurs twice in one mapping",
    "Only the last one counts. Remove the other.",
)
WRONG_TYPE: Final = Rule(
    "wrong-type",
    _E,
    "the value cannot be read as the field's type",
    "Write a value of the type that the message names.",
)
REFUSED: Final = Rule(
    "refused",
    _E,
    "the API server refuses the request",
    "The message is the API server's.",
)
SERVER_WARNING: Final = Rule(
    "server-warning",
    _W,
    "the API server accepts the object with a warning",
    "The message is the API server's.",
)
FIELD_RULES: Final[Mapping[ErrorType, Rule]] = {
    type_: Rule(
        f"field-{id_}",
        _E,
        f"the API server refuses the object: {type_.words.lower()}",
        "The message has the value and the rule it breaks, as the API server words it.",
    )
    for type_, id_ in (
        (ErrorType.REQUIRED, "required"),
        (ErrorType.INVALID, "invalid"),
        (ErrorType.DUPLICATE, "duplicate"),
        (ErrorType.NOT_SUPPORTED, "unsupported"),
        (ErrorType.FORBIDDEN, "forbidden"),
        (ErrorType.TOO_LONG, "too-long"),
        (ErrorType.TOO_MANY, "too-many"),
        (ErrorType.NOT_FOUND, "not-found"),
        (ErrorType.INTERNAL, "internal"),
    )
}
OLD_VERSION: Final = Rule(
    "old-version",
    _W,
    "an API version that clusters do not serve by default",
    "Write resource.k8s.io/v1. Requests and devices have another shape there, see moved-field.",
)
ADMIN_NAMESPACE: Final = Rule(
    "admin-namespace",
    _W,
    "adminAccess in a namespace without the label that allows it, or that is not among the objects",
    "Admin access is refused unless the namespace has the label "
    "`resource.kubernetes.io/admin-access: true`. Give lint the Namespace, or read the cluster.",
)

# --- expressions ---

CEL_COMPILE: Final = Rule(
    "cel-compile",
    _E,
    "a CEL expression does not compile",
    "Correct the expression at the place shown. `allot cel` tries it on devices.",
)
CEL_COST: Final = Rule(
    "cel-cost",
    _E,
    "the estimated cost of a CEL expression is above the limit",
    "The estimate assumes the largest values the declarations allow. Parts from split() have no "
    "bound: compare them as they are, or use matches(), find() or replace() on the whole string.",
)
UNKNOWN_ATTRIBUTE: Final = Rule(
    "unknown-attribute",
    _W,
    "an expression reads an attribute or capacity that no device has",
    "Correct the name, or guard the read with has() if other clusters have it.",
)
SELECTOR_ERROR: Final = Rule(
    "selector-error",
    _W,
    "an expression fails on some devices",
    "The scheduler stops with an error when it evaluates the expression on such a device, and the "
    "pod stays pending. Guard the read with has(), or use `.?` and orValue().",
)
SELECTOR_NEVER: Final = Rule(
    "selector-never",
    _W,
    "the selectors are true for no device",
    "Compare the expression with the values that the devices have; `allot cel` shows them.",
)

# --- references ---

MISSING_CLASS: Final = Rule(
    "missing-class",
    _E,
    "the DeviceClass does not exist",
    "A pod with such a claim stays pending. A name that is not close to any class given is a "
    "warning unless the cluster was read.",
)
MISSING_ALTERNATIVE_CLASS: Final = Rule(
    "missing-alternative-class",
    _W,
    "the DeviceClass of an alternative does not exist",
    "allot skips the alternative; kube-scheduler v1.38 leaves the pod pending.",
)
MISSING_TEMPLATE: Final = Rule(
    "missing-template",
    _E,
    "the ResourceClaimTemplate does not exist in the pod's namespace",
    "No claim is created and the pod stays pending. A name that is not close to any template given "
    "is a warning unless the cluster was read.",
)
MISSING_CLAIM: Final = Rule(
    "missing-claim",
    _E,
    "the ResourceClaim does not exist in the pod's namespace",
    "The pod stays pending. A name that is not close to any claim given is a warning unless the "
    "cluster was read.",
)
MISSING_REQUEST: Final = Rule(
    "missing-request",
    _E,
    "a container names a request that the claim does not have",
    "The container gets no device. Write the name of a request of the claim or its template.",
)

# --- claims ---

TOO_MANY_DEVICES: Final = Rule(
    "too-many-devices",
    _W,
    "the claim asks for more devices than a claim can get",
    "A claim gets at most 32 devices. Split it into several claims.",
)
UNREACHABLE_ALTERNATIVE: Final = Rule(
    "unreachable-alternative",
    _W,
    "an earlier alternative accepts everything that this one does",
    "Alternatives are tried in order. Put the narrower one first, or remove it.",
)
MATCH_AND_DISTINCT: Final = Rule(
    "match-and-distinct",
    _W,
    "an attribute must match and be distinct",
    "A constraint has matchAttribute or distinctAttribute, and two constraints on the same devices "
    "cannot ask for both of one attribute.",
)
ONE_SIDED_DERIVATION: Final = Rule(
    "one-sided-derivation",
    _W,
    "a constraint compares a derived attribute with requests that do not have it",
    "Devices of a request that does not derive the attribute must publish it under that very name. "
    "Derive it in every request of the constraint.",
)
CONSTRAINT_TYPES: Final = Rule(
    "constraint-types",
    _W,
    "a constraint compares values of different types",
    '1 never matches "1". Convert one side, for example with string() or int().',
)
CONSTRAINT_ATTRIBUTE: Final = Rule(
    "constraint-attribute",
    _W,
    "a constraint is on an attribute that no device of a request has",
    "A device without the attribute does not satisfy the constraint. Correct the name, or derive "
    "the attribute.",
)
CONSTRAINT_VALUES: Final = Rule(
    "constraint-values",
    _W,
    "no devices satisfy the constraint",
    "The requests have no value in common, or fewer different values than devices are needed.",
)
NOT_ENOUGH_DEVICES: Final = Rule(
    "not-enough-devices",
    _W,
    "the request asks for more devices than any node has",
    "All devices of a claim must be usable on one node, and a request never gets a device twice. "
    "Lower the count or widen the selectors.",
)
UNSATISFIABLE_CLAIM: Final = Rule(
    "unsatisfiable-claim",
    _W,
    "the requests of the claim cannot be satisfied together on any node",
    "Decided by the allocator with all devices free and untainted, if no other rule finds a problem in the claim. The message names "
    "the requests and constraints that exclude each other. Change one of them.",
)
POOL_CONTRADICTION: Final = Rule(
    "pool-contradiction",
    _W,
    "slices of one pool contradict each other",
    "The allocator refuses the whole pool, and the status of the pool says why. Number of slices, names of devices and "
    "counter sets must agree in all slices of a generation.",
)
COUNTER_AMOUNT: Final = Rule(
    "counter-amount",
    _W,
    "a device consumes more of a counter than its counter set has",
    "Such a device is never allocated. Raise the counter, or lower what the device consumes.",
)
UNKNOWN_DRIVER: Final = Rule(
    "unknown-driver",
    _W,
    "no slice is of the driver that a selector or a configuration names, and another one is called almost the same",
    "The selector accepts no device, or the configuration is for none. Correct the name.",
)
UNKNOWN_TAINT: Final = Rule(
    "unknown-taint",
    _W,
    "a toleration names a taint that no device has",
    "Correct the key, or ignore this rule if the taint is added only when needed.",
)

# --- capacity ---

CAPACITY_NAME: Final = Rule(
    "capacity-name",
    _W,
    "a capacity request names a capacity that no device has",
    "Names are compared literally: a driver that publishes `bandwidth` does not match "
    "`nic.example.com/bandwidth`. Write the name as the slices do.",
)
CAPACITY_REQUEST: Final = Rule(
    "capacity-request",
    _W,
    "no device can provide the requested capacity",
    "The amount is negative, above the capacity or the policy's maximum, or above all valid values.",
)
CAPACITY_ROUNDING: Final = Rule(
    "capacity-rounding",
    _W,
    "the consumed capacity depends on DRAFractionalCapacityRange",
    "The gate is on by default in allot and off in Kubernetes v1.38. Request whole units, or an "
    "amount that both round alike.",
)
NEGATIVE_MINIMUM: Final = Rule(
    "negative-minimum",
    _W,
    "the minimum of a request policy is negative",
    "A minimum below zero limits nothing. Write 0 or more.",
)
NEGATIVE_CAPACITY: Final = Rule(
    "negative-capacity",
    _W,
    "a capacity is negative",
    "No request can be satisfied from it. Write 0 or more.",
)
DEFAULT_ABOVE_VALUE: Final = Rule(
    "default-above-value",
    _W,
    "the default of a request policy is larger than the capacity",
    "A request that states no amount never fits. Lower the default.",
)

# --- other clusters ---

TARGET_REFUSES: Final = Rule(
    "target-refuses",
    _E,
    "the target refuses the object",
    "Only with --target. The message has the target's own words.",
)
TARGET_DROPS: Final = Rule(
    "target-drops",
    _E,
    "the target drops a field, because its feature gate is off there",
    "Only with --target. Switch the gate on in that cluster, or do without the field.",
)
TARGET_DIFFERS: Final = Rule(
    "target-differs",
    _W,
    "the target decides otherwise",
    "Only with --target. See docs/decisions/0003-seeds-and-kubernetes.md.",
)

RULES: Final[Mapping[str, Rule]] = {
    rule.id: rule
    for rule in (
        UNREADABLE,
        INVALID_HARDWARE,
        UNKNOWN_KIND,
        UNKNOWN_FIELD,
        MOVED_FIELD,
        DUPLICATE_FIELD,
        WRONG_TYPE,
        REFUSED,
        SERVER_WARNING,
        *FIELD_RULES.values(),
        OLD_VERSION,
        ADMIN_NAMESPACE,
        CEL_COMPILE,
        CEL_COST,
        UNKNOWN_ATTRIBUTE,
        SELECTOR_ERROR,
        SELECTOR_NEVER,
        MISSING_CLASS,
        MISSING_ALTERNATIVE_CLASS,
        MISSING_TEMPLATE,
        MISSING_CLAIM,
        MISSING_REQUEST,
        TOO_MANY_DEVICES,
        UNREACHABLE_ALTERNATIVE,
        MATCH_AND_DISTINCT,
        ONE_SIDED_DERIVATION,
        CONSTRAINT_TYPES,
        CONSTRAINT_ATTRIBUTE,
        CONSTRAINT_VALUES,
        NOT_ENOUGH_DEVICES,
        UNSATISFIABLE_CLAIM,
        POOL_CONTRADICTION,
        COUNTER_AMOUNT,
        UNKNOWN_DRIVER,
        UNKNOWN_TAINT,
        CAPACITY_NAME,
        CAPACITY_REQUEST,
        CAPACITY_ROUNDING,
        NEGATIVE_MINIMUM,
        NEGATIVE_CAPACITY,
        DEFAULT_ABOVE_VALUE,
        TARGET_REFUSES,
        TARGET_DROPS,
        TARGET_DIFFERS,
    )
}
