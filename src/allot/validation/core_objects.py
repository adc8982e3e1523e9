"""Core kinds with few rules: namespaces, leases, priority and runtime classes, events, revisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.api.raw import RawObject
from allot.validation.container_resources import NOT_NEGATIVE, validate_container_resources
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from allot.validation.immutable_fields import unchanged
from allot.validation.lists import identity, repeated
from allot.validation.metadata import validate_labels
from allot.validation.names import validate_label
from allot.validation.parts import as_part
from allot.validation.pod_placement import validate_toleration

SPEC: Final = FieldPath("spec")
STATUS: Final = FieldPath("status")
NAME: Final = FieldPath("metadata") / "name"


# --- namespaces ---


def validate_namespace_phase(namespace: RawObject) -> Iterator[FieldError]:
    """A namespace is terminating exactly while it is being deleted."""
    phase, path = namespace.get("status", "phase", default=""), STATUS / "Phase"
    if namespace.metadata.deletion_timestamp is None:
        if phase != "Active":
            yield invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty")
    elif phase != "Terminating":
        yield invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")


# --- coordination, scheduling, node ---


def validate_lease(lease: RawObject) -> Iterator[FieldError]:
    seconds = lease.get("spec", "leaseDurationSeconds")
    if isinstance(seconds, int) and seconds <= 0:
        yield invalid(SPEC / "leaseDurationSeconds", seconds, "must be greater than 0")
    transitions = lease.get("spec", "leaseTransitions")
    if isinstance(transitions, int) and transitions < 0:
        yield invalid(SPEC / "leaseTransitions", transitions, NOT_NEGATIVE)


MAX_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_PREFIX: Final = "system-"
SYSTEM_CLASSES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")


def validate_priority_class(priority_class: RawObject) -> Iterator[FieldError]:
    name, value = priority_class.metadata.name, priority_class.get("value", default=0)
    if name.startswith(SYSTEM_PREFIX):
        if SYSTEM_CLASSES.get(name) != value:
            yield forbidden(
                NAME,
                f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use "
                f"only. error: {name} is not a known system priority class",
            )
    elif value > MAX_USER_PRIORITY:
        yield forbidden(
            FieldPath("value"),
            f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}",
        )
    policy = priority_class.get("preemptionPolicy", default="PreemptLowerPriority")
    if policy not in PREEMPTION_POLICIES:
        path = FieldPath("preemptionPolicy")
        yield not_supported(path, policy, PREEMPTION_POLICIES, is_ordered=True)


def validate_priority_class_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    if new.get("value", default=0) != old.get("value", default=0):
        yield forbidden(FieldPath("value"), "may not be changed in an update.")
    yield from unchanged("preemptionPolicy")(new, old)


def validate_runtime_class(runtime_class: RawObject) -> Iterator[FieldError]:
    handler = runtime_class.get("handler", default="")
    if not handler:
        yield required(FieldPath("handler"))
    else:
        yield from validate_label(handler, FieldPath("handler"))
    overhead = as_part(runtime_class.get("overhead", "podFixed"))
    yield from validate_container_resources({"limits": overhead}, FieldPath("overhead"))
    scheduling = FieldPath("scheduling")
    labels = as_part(runtime_class.get("scheduling", "nodeSelector"))
    yield from validate_labels(labels, scheduling / "nodeSelector")
    tolerations = runtime_class.get("scheduling", "tolerations", default=[])
    are_repeated = repeated(map(identity, tolerations))
    for index, (toleration, is_repeated) in enumerate(zip(tolerations, are_repeated, strict=True)):
        where = scheduling / "tolerations" @ index
        yield from validate_toleration(toleration, where)
        if is_repeated:
            yield duplicate(where, toleration)


# --- revisions ---


def validate_revision(revision: RawObject) -> Iterator[FieldError]:
    number = revision.get("revision", default=0)
    if number < 0:
        yield invalid(FieldPath("revision"), number, NOT_NEGATIVE)
    if revision.get("data") is None:
        yield required(FieldPath("data"), "data is mandatory")
