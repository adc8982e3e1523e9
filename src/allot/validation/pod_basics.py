"""The spec of a pod without its claims: policies, times, and what other modules have.

Volumes are in `pod_volumes`, containers in `containers`, claims in `pod`, placement in `pod_placement`, the rest in
`pod_host`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.validation.containers import validate_containers
from allot.validation.fields import FieldError, FieldPath, invalid, not_supported, required
from allot.validation.names import validate_subdomain
from allot.validation.parts import Part, text
from allot.validation.pod_host import validate_pod_host
from allot.validation.pod_placement import validate_pod_placement
from allot.validation.pod_resources import validate_pod_resources
from allot.validation.pod_volumes import validate_volumes
from allot.validation.pod_windows import validate_for_operating_system, validate_host_processes

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")


def validate_pod_basics(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """The spec of a pod or of a pod template, with defaults."""
    yield from validate_volumes(spec, path / "volumes")
    yield from validate_containers(spec, path)
    yield from validate_pod_resources(spec, path / "resources")
    for field, allowed in (("restartPolicy", RESTART_POLICIES), ("dnsPolicy", DNS_POLICIES)):
        if field in spec and spec[field] not in allowed:
            yield not_supported(path / field, spec[field], allowed, is_ordered=True)
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline < 2**31:
        yield invalid(
            path / "activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive"
        )
    yield from validate_pod_host(spec, path)
    yield from _validate_classes(spec, path)
    yield from validate_pod_placement(spec, path)
    yield from validate_host_processes(spec, path)
    yield from validate_for_operating_system(spec, path)


def _validate_classes(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """The names of classes, and what one says about preemption."""
    if text(spec, "priorityClassName"):
        yield from validate_subdomain(text(spec, "priorityClassName"), path / "priorityClassName")
    if spec.get("runtimeClassName") is not None:
        yield from validate_subdomain(text(spec, "runtimeClassName"), path / "runtimeClassName")
    policy = spec.get("preemptionPolicy")
    if policy == "":
        yield required(path / "preemptionPolicy")
    elif policy is not None and policy not in PREEMPTION_POLICIES:
        where = path / "preemptionPolicy"
        yield not_supported(where, policy, PREEMPTION_POLICIES, is_ordered=True)
