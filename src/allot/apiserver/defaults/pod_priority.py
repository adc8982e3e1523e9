"""The priority of a new pod: the number and the preemption policy of its priority class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from allot.apiserver.defaults.filling import Data

SYSTEM_PRIORITIES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""Classes that exist in every cluster."""
PREEMPT: Final = "PreemptLowerPriority"


class PriorityClasses(NamedTuple):
    """The PriorityClass objects there are, as a pod needs them."""

    find: Callable[[str], Mapping[str, Any] | None] = lambda _: None
    default: Mapping[str, Any] | None = None
    """The class with `globalDefault`. Of several, the one with the lowest value."""


NO_CLASSES: Final = PriorityClasses()


class Denied(NamedTuple):
    """Admission says no: answered with 403, behind `pods "x" is forbidden: `."""

    message: str


def resolve_priority(pod: Data, classes: PriorityClasses = NO_CLASSES) -> Data | Denied:
    """A new pod with its priority, or why it cannot have one. Updates keep what was found here."""
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return pod
    name = spec.get("priorityClassName") or ""
    found = classes.find(name) if name else classes.default
    if found is None and name in SYSTEM_PRIORITIES:
        found = {"metadata": {"name": name}, "value": SYSTEM_PRIORITIES[name]}
    if found is None and name:
        return Denied(f"no PriorityClass with name {name} was found")
    value, policy = (0, PREEMPT) if found is None else (_value(found), _policy(found))
    given, given_policy = spec.get("priority"), spec.get("preemptionPolicy")
    if given is not None and given != value:
        return Denied(
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
    if given_policy is not None and given_policy != policy:
        return Denied(
            f"the string value of PreemptionPolicy ({given_policy}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
    resolved = {"priority": value, "preemptionPolicy": policy}
    if found is not None:
        resolved["priorityClassName"] = found.get("metadata", {}).get("name", name)
    return pod | {"spec": spec | resolved}


def _value(found: Mapping[str, Any]) -> int:
    return int(found.get("value", 0))


def _policy(found: Mapping[str, Any]) -> str:
    return str(found.get("preemptionPolicy") or PREEMPT)
