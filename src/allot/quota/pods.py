"""The quota usage of a pod: the requests and limits of its containers, unless it has ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from allot.api.amounts import add, is_sidecar, peak_of_containers
from allot.api.raw import RawObject
from allot.api.resource import IMPLICIT_EXTENDED_RESOURCE_PREFIX
from allot.api.selectors import DOES_NOT_EXIST, EXISTS, NOT_IN, Requirement
from allot.quota.amounts import LIMITS, ONE, REQUESTS, Amounts, read_amounts

CPU: Final = "cpu"
MEMORY: Final = "memory"
STORAGE: Final = "ephemeral-storage"
HUGE_PAGES: Final = "hugepages-"
PODS: Final = "pods"
_POD_COUNT: Final = "count/pods"

_COMPUTE: Final = (CPU, MEMORY, STORAGE)
_NAMES: Final = frozenset(
    {
        PODS,
        _POD_COUNT,
        *_COMPUTE,
        *(REQUESTS + name for name in _COMPUTE),
        *(LIMITS + name for name in _COMPUTE),
    }
)
REQUIRED_OF_CONTAINERS: Final = frozenset(
    {CPU, MEMORY, REQUESTS + CPU, REQUESTS + MEMORY, LIMITS + CPU, LIMITS + MEMORY}
)
"""Entries that require every container to set the request or limit."""


def counts_pods(name: str) -> bool:
    """Whether pods count towards this entry of a quota."""
    if name in _NAMES or name.startswith((HUGE_PAGES, REQUESTS + HUGE_PAGES)):
        return True
    return name.startswith(REQUESTS) and is_extended(name.removeprefix(REQUESTS))


def is_extended(resource: str) -> bool:
    """Whether a resource is an extended resource, explicit or implicit for a device class."""
    if resource.startswith(IMPLICIT_EXTENDED_RESOURCE_PREFIX):
        return True
    return "/" in resource and "kubernetes.io/" not in resource


def has_ended(pod: RawObject, now: datetime) -> bool:
    """Whether a pod does not count any more: it is finished, or its deletion is overdue."""
    if pod.get("status", "phase") in ("Succeeded", "Failed"):
        return True
    metadata = pod.metadata
    if metadata.deletion_timestamp is None or metadata.deletion_grace_period_seconds is None:
        return False
    grace = timedelta(seconds=metadata.deletion_grace_period_seconds)
    return now > metadata.deletion_timestamp + grace


def pod_usage(pod: RawObject, now: datetime) -> Amounts:
    usage: Amounts = {_POD_COUNT: ONE}
    if has_ended(pod, now):
        return usage
    usage[PODS] = ONE
    for name, amount in peak_resources(pod, "requests").items():
        if name in _COMPUTE or name.startswith(HUGE_PAGES):
            usage[name] = usage[REQUESTS + name] = amount
        elif is_extended(name):
            usage[REQUESTS + name] = amount
    for name, amount in peak_resources(pod, "limits").items():
        if name in _COMPUTE:
            usage[LIMITS + name] = amount
    return usage


def peak_resources(pod: RawObject, what: str) -> Amounts:
    """The peak of the pod's requests or limits.

    Containers and sidecars run together; each init container runs beside the sidecars before it. Resources of
    the pod level replace the sum. Overhead is added, to limits only where a limit is set.
    """
    total = peak_of_containers(
        (_amounts(container, what) for container in _list(pod, "containers")),
        (
            (is_sidecar(container), _amounts(container, what))
            for container in _list(pod, "initContainers")
        ),
    )
    for name, amount in read_amounts(pod.get("spec", "resources", what)).items():
        if name in (CPU, MEMORY) or name.startswith(HUGE_PAGES):
            total[name] = amount
    overhead = read_amounts(pod.get("spec", "overhead"))
    if what == "limits":
        overhead = {name: amount for name, amount in overhead.items() if name in total}
    add(total, overhead)
    return total


def missing_amounts(pod: RawObject, names: Iterable[str]) -> str:
    """Requests and limits that these quota entries require and containers lack; empty if nothing is missing."""
    on_pod = _set_entries(pod.get("spec", "resources", default={}))
    wanted = sorted((REQUIRED_OF_CONTAINERS & set(names)) - on_pod)
    missing: dict[str, list[str]] = {}
    for container in (*_list(pod, "containers"), *_list(pod, "initContainers")):
        entries = _set_entries(container.get("resources") or {})
        for name in wanted:
            if name not in entries:
                missing.setdefault(name, []).append(str(container.get("name", "")))
    if not missing:
        return ""
    texts = (f"{name} for: {','.join(sorted(set(who)))}" for name, who in missing.items())
    return f"must specify {'; '.join(texts)}"


def _set_entries(resources: Mapping[str, Any]) -> set[str]:
    requests = resources.get("requests") or {}
    limits = resources.get("limits") or {}
    return {*requests, *(REQUESTS + name for name in requests), *(LIMITS + name for name in limits)}


# --- scopes ---


def matches_scope(pod: RawObject, scope: str, operator: str, values: Iterable[str]) -> bool:
    """Whether a pod matches a scope of a quota."""
    match scope:
        case "Terminating":
            return _has_deadline(pod)
        case "NotTerminating":
            return not _has_deadline(pod)
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            return selects([pod.get("spec", "priorityClassName", default="")], operator, values)
        case "CrossNamespacePodAffinity":
            return _has_cross_namespace_affinity(pod)
        case _:
            return False


def selects(names: Iterable[str], operator: str, values: Iterable[str]) -> bool:
    """Whether the names that are set satisfy a scope selector requirement."""
    given: set[str | None] = {name for name in names if name}
    requirement = Requirement("", operator or EXISTS, frozenset(filter(given.__contains__, values)))
    admitted = map(requirement.admits, given or {None})
    return all(admitted) if operator in (NOT_IN, DOES_NOT_EXIST) else any(admitted)


def _has_deadline(pod: RawObject) -> bool:
    seconds = pod.get("spec", "activeDeadlineSeconds")
    return isinstance(seconds, int) and seconds >= 0


def _is_best_effort(pod: RawObject) -> bool:
    """Whether the QoS class is BestEffort: no container requests or limits CPU or memory."""
    parts = [*_list(pod, "containers"), *_list(pod, "initContainers"), pod.get("spec", default={})]
    return not any(
        amount
        for part in parts
        for what in ("requests", "limits")
        for name, amount in _amounts(part, what).items()
        if name in (CPU, MEMORY)
    )


def _has_cross_namespace_affinity(pod: RawObject) -> bool:
    """Whether affinity terms cover pods of other namespaces."""
    return any(
        term.get("namespaces") or term.get("namespaceSelector") is not None
        for term in _affinity_terms(pod)
    )


def _affinity_terms(pod: RawObject) -> Iterator[Mapping[str, Any]]:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = pod.get("spec", "affinity", kind, default={})
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}


def _list(pod: RawObject, field: str) -> list[dict[str, Any]]:
    containers: list[dict[str, Any]] = pod.get("spec", field, default=[])
    return containers


def _amounts(container: Mapping[str, Any], what: str) -> Amounts:
    return read_amounts((container.get("resources") or {}).get(what))
