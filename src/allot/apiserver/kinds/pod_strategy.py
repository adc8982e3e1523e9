"""Pods: what the server fills in, the DRA fields it drops, and what an update may change."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Final, TypeVar

import msgspec

from allot import features
from allot.api.base import replace
from allot.api.core import Container, Pod, PodLevelResources, PodParts, PodSpec, PodStatus
from allot.api.decoding import from_value
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject
from allot.apiserver.kinds.pod_specs import POD_SPECS, SpecFacts
from allot.apiserver.kinds.request import WriteRequest, generated_name
from allot.apiserver.known_results import LastResult
from allot.features import FeatureGates
from allot.validation.fields import FieldError, FieldPath, forbidden, invalid
from allot.validation.internal_types import internal_value
from allot.validation.lists import identity
from allot.validation.metadata import validate_metadata, validate_metadata_update
from allot.validation.pod import all_containers, validate_pod_spec, validate_static_pod
from allot.validation.pod_annotations import (
    validate_pod_annotation_update,
    validate_pod_annotations,
)
from allot.validation.pod_status import validate_pod_status
from allot.validation.pod_status_basics import validate_pod_status_update
from allot.validation.pod_volumes import validate_token_volumes
from allot.validation.pod_warnings import app_armor_warning
from allot.validation.profile_annotations import (
    APP_ARMOR,
    annotated_profile,
    validate_profile_annotations,
)

StoredPod = TypeVar("StoredPod", bound=RawObject)
SPEC: Final = FieldPath("spec")
MAY_NOT_CHANGE: Final = (
    "pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _typed_spec(spec: Mapping[str, Any]) -> PodSpec:
    return msgspec.convert(spec, PodSpec, dec_hook=from_value)


_typed_specs: Final = LastResult(_typed_spec)


def parts_of(pod: RawObject) -> PodParts:
    """The typed parts of a pod that has been decoded without error before. Its metadata does not become JSON for it."""
    spec = _typed_specs.of(pod.rest.get("spec") or {})
    status = msgspec.convert(pod.rest.get("status") or {}, PodStatus, dec_hook=from_value)
    return PodParts(pod.metadata, spec, status)


# --- create ---


def prepare_create(pod: Pod, request: WriteRequest) -> Pod:
    metadata = replace(
        pod.metadata,
        name=pod.metadata.name or generated_name(pod.metadata, request.new_name_suffix),
        namespace=pod.metadata.namespace or request.namespace,
        uid="",
        generation=1,
        creation_timestamp=None,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
        self_link="",
    )
    pod = _drop_disabled_spec_fields(pod, None, request)
    pod = _with_annotated_profiles(pod, request)
    spec = pod.rest.get("spec") or {}
    facts = POD_SPECS.facts(spec)
    if facts.quality is None:
        facts.quality = quality_of_service(pod)
    status: dict[str, Any] = {"phase": "Pending", "qosClass": facts.quality}
    if spec.get("schedulingGates"):
        status["conditions"] = [_SCHEDULING_GATED]
    return pod.with_parts({"status": status}, metadata)


def _with_annotated_profiles(pod: Pod, request: WriteRequest) -> Pod:
    """The AppArmor profiles that older clients write in annotations are also in the fields for them."""
    annotations = pod.metadata.annotations
    if not annotations or not any(name.startswith(APP_ARMOR) for name in annotations):
        return pod
    if pod.get("spec", "os", "name") == "windows":
        return pod
    whole = pod.get("spec", "securityContext", "appArmorProfile")
    for field in ("initContainers", "containers", "ephemeralContainers"):
        containers = [dict(container) for container in pod.get("spec", field, default=[])]
        for container in containers:
            name = f"{APP_ARMOR}{container.get('name')}"
            context = container.get("securityContext") or {}
            if name not in annotations or context.get("appArmorProfile") is not None:
                continue
            profile = annotated_profile(annotations[name])
            if profile and profile != whole:
                container["securityContext"] = context | {"appArmorProfile": profile}
            if request.warnings is not None and (not profile or profile != whole):
                request.warnings.append(app_armor_warning(name))
        if containers:
            pod = pod.with_value(containers, "spec", field)
    return pod


# No scheduler looks at a gated pod, so that it would never say why it waits.
_SCHEDULING_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
    "lastProbeTime": None,
    "lastTransitionTime": None,
}


def validate_create(pod: Pod, _: WriteRequest) -> list[FieldError]:
    """All but the plain parts of the spec."""
    spec = pod.rest.get("spec") or {}
    return [*validate_before_spec(pod, POD_SPECS.facts(spec)), *validate_after_spec(pod, spec)]


def validate_before_spec(pod: Pod, facts: SpecFacts) -> Iterator[FieldError]:
    """The metadata of a new pod, and its claims, of whose spec these facts are known."""
    yield from validate_metadata(pod.metadata, namespaced=True)
    if "claims" not in facts.valid:
        yield from facts.errors("claims", lambda: validate_pod_spec(parts_of(pod).spec))
    if pod.metadata.annotations:
        yield from validate_static_pod(pod.metadata, pod.get("spec", "resourceClaims"))
        yield from validate_pod_annotations(pod.metadata.annotations, pod.get("spec", default={}))


def validate_after_spec(pod: Pod, spec: Mapping[str, Any]) -> Iterator[FieldError]:
    """What a new pod with this spec may not have, and profiles in annotations that contradict its fields."""
    path = SPEC
    if spec.get("volumes"):
        yield from validate_token_volumes(spec, path / "volumes")
    if spec.get("ephemeralContainers"):
        yield forbidden(path / "ephemeralContainers", "cannot be set on create")
    if pod.metadata.annotations:
        yield from validate_profile_annotations(pod.metadata.annotations, spec, path)


def quality_of_service(pod: Pod) -> str:
    """Guaranteed, Burstable or BestEffort, by the cpu and memory of all containers."""
    whole = pod.spec.resources
    if whole is not None and (whole.requests or whole.limits):
        return _quality_of_whole(whole)
    containers = all_containers(pod.spec)
    if not any(map(_asks_for_something, containers)):
        return "BestEffort"
    if all(map(_is_guaranteed, containers)):
        return "Guaranteed"
    return "Burstable"


def _quality_of_whole(resources: PodLevelResources) -> str:
    """Of a pod that has resources of its own."""
    if not any(
        amounts.get(name) for amounts in (resources.requests, resources.limits) for name in _COUNTED
    ):
        return "BestEffort"
    limits, requests = resources.limits, resources.requests
    is_guaranteed = all(
        limits.get(name) and requests.get(name) == limits[name] for name in _COUNTED
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _asks_for_something(container: Container) -> bool:
    resources = container.resources
    if not resources.requests and not resources.limits:
        return False
    return any(
        amounts.get(name) for amounts in (resources.requests, resources.limits) for name in _COUNTED
    )


def _is_guaranteed(container: Container) -> bool:
    limits, requests = container.resources.limits, container.resources.requests
    return all(
        limits.get(name) and requests.get(name, limits[name]) == limits[name] for name in _COUNTED
    )


_COUNTED: Final = ("cpu", "memory")


def _drop_disabled_spec_fields(pod: Pod, old: Pod | None, request: WriteRequest) -> Pod:
    if features.DYNAMIC_RESOURCE_ALLOCATION in request.gates or (
        old is not None and old.spec.resource_claims
    ):
        return pod
    pod = pod.with_value(None, "spec", "resourceClaims")
    for field in ("containers", "initContainers"):
        containers = pod.get("spec", field)
        if containers:
            without = [_without_claims(container) for container in containers]
            pod = pod.with_value(without, "spec", field)
    return pod


def _without_claims(container: dict[str, Any]) -> dict[str, Any]:
    resources = container.get("resources")
    if not resources or "claims" not in resources:
        return container
    kept = {name: value for name, value in resources.items() if name != "claims"}
    return container | {"resources": kept}


# --- update ---


def prepare_update(pod: Pod, old: Pod, request: WriteRequest) -> Pod:
    pod = pod.with_metadata(_stored_metadata(pod, old))
    pod = _drop_disabled_spec_fields(pod, old, request)
    if pod.get("spec", "overhead") == {}:  # which is that of the class, or none
        pod = pod.with_value(None, "spec", "overhead")
    pod = pod.with_value(old.get("status"), "status")
    if pod.get("spec") != old.get("spec") and old.metadata.generation:
        pod = pod.with_metadata(replace(pod.metadata, generation=old.metadata.generation + 1))
    return pod


def validate_update(pod: Pod, old: Pod, _: WriteRequest) -> list[FieldError]:
    errors = list(validate_metadata_update(pod.metadata, old.metadata))
    errors += validate_pod_annotation_update(pod.metadata.annotations, old.metadata.annotations)
    errors += _validate_deadline_update(pod, old)
    if pod.get("spec") == old.get("spec"):
        return errors
    claims = (("spec", "resourceClaims"), ("spec", "resources", "claims"))
    if any(pod.get(*path) != old.get(*path) for path in claims):
        errors += validate_pod_spec(pod.spec)
    expected = _with_allowed_changes(pod, old)
    if pod.get("spec") != expected:
        change = value_diff(
            internal_value(expected, "PodSpec"), internal_value(pod.get("spec"), "PodSpec")
        )
        errors.append(forbidden(FieldPath("spec"), f"{MAY_NOT_CHANGE}\n{change}"))
    return errors


def _validate_deadline_update(pod: Pod, old: Pod) -> Iterator[FieldError]:
    """A deadline may be set and shortened."""
    path = FieldPath("spec") / "activeDeadlineSeconds"
    before, after = (each.get("spec", "activeDeadlineSeconds") for each in (old, pod))
    if after is None:
        if before is not None:
            yield invalid(path, None, "must not update from a positive integer to nil value")
    elif not 0 <= after <= _MAX_DEADLINE:
        yield invalid(path, after, f"must be between 0 and {_MAX_DEADLINE}, inclusive")
    elif before is not None and before < after:
        yield invalid(path, after, "must be less than or equal to previous value")


_MAX_DEADLINE: Final = 2**31 - 1


def _stored_metadata(pod: RawObject, old: RawObject, **more: Any) -> ObjectMeta:
    """The metadata of a written pod, with what clients do not change from the stored one."""
    stored = old.metadata
    return replace(
        pod.metadata,
        resource_version=pod.metadata.resource_version or stored.resource_version,
        uid=stored.uid,
        generation=stored.generation,
        creation_timestamp=stored.creation_timestamp,
        deletion_timestamp=stored.deletion_timestamp,
        **more,
    )


def _with_allowed_changes(pod: Pod, old: Pod) -> Any:
    """The old spec with every change of the new one that is allowed."""
    spec, new = dict(old.get("spec", default={})), pod.get("spec", default={})
    for field in ("containers", "initContainers"):
        stored, sent = spec.get(field), new.get(field)
        if stored and sent and len(stored) == len(sent):
            spec[field] = [
                before | {"image": after["image"]}
                if isinstance(before, dict) and isinstance(after, dict) and "image" in after
                else before
                for before, after in zip(stored, sent, strict=True)
            ]
    spec.pop("activeDeadlineSeconds", None)
    if "activeDeadlineSeconds" in new:
        spec["activeDeadlineSeconds"] = new["activeDeadlineSeconds"]
    if new.get("tolerations") and _keeps_tolerations(
        spec.get("tolerations", []), new["tolerations"]
    ):
        spec["tolerations"] = new["tolerations"]
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0 and new.get("terminationGracePeriodSeconds") == 1:
        spec["terminationGracePeriodSeconds"] = 1
    gates = {identity(gate) for gate in spec.get("schedulingGates") or ()}
    if gates and all(identity(gate) in gates for gate in new.get("schedulingGates", [])):
        for field in ("schedulingGates", "nodeSelector", "affinity"):
            spec = {name: value for name, value in spec.items() if name != field}
            if field in new:
                spec[field] = new[field]
    return spec


def _keeps_tolerations(before: list[Any], after: list[Any]) -> bool:
    """Whether all are still there, wherever: only how long they tolerate may change."""
    kept = {identity(_without_seconds(toleration)) for toleration in after}
    return all(identity(_without_seconds(toleration)) in kept for toleration in before)


def _without_seconds(toleration: Any) -> Any:
    if not isinstance(toleration, dict):
        return toleration
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


MAX_DIFF_LINES: Final = 500
"""Of a longer value so many lines are compared, from the first that differs: the work grows with their square."""
_CONTEXT: Final = 3


def value_diff(before: Any, after: Any) -> str:
    """What differs between two values, as lines of JSON. Of long values the first differences."""

    def pretty(value: Any) -> list[str]:
        encoded = msgspec.json.encode(value)
        return msgspec.json.format(encoded, indent=1).decode().splitlines()

    old, new = pretty(before), pretty(after)
    if max(len(old), len(new)) > MAX_DIFF_LINES:
        pairs = enumerate(zip_longest(old, new))
        first = next((index for index, (was, is_) in pairs if was != is_), 0)
        start = max(first - _CONTEXT, 0)
        old, new = (lines[start : start + MAX_DIFF_LINES] for lines in (old, new))
    lines = difflib.unified_diff(old, new, lineterm="", n=_CONTEXT)
    return "".join(f"{line}\n" for line in list(lines)[2:])


# --- status ---


_CONTAINER_STATUSES: Final = (
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
)
# Clients expect these in every container status.
_EMPTY_CONTAINER_STATUS: Final = {
    "image": "", "imageID": "", "lastState": {}, "name": "", "ready": False, "restartCount": 0,
    "state": {},
}  # fmt: skip


def prepare_status_update(pod: RawObject, old: StoredPod, request: WriteRequest) -> StoredPod:
    metadata = _stored_metadata(pod, old, owner_references=old.metadata.owner_references)
    status = dict(pod.rest.get("status") or {})
    before = old.rest.get("status") or {}
    for field in ("qosClass", "observedGeneration"):
        if not status.get(field) and before.get(field):
            status[field] = before[field]
    if not status.keys().isdisjoint(_CONTAINER_STATUSES):
        for field in _CONTAINER_STATUSES:
            if status.get(field):
                status[field] = [_EMPTY_CONTAINER_STATUS | each for each in status[field]]
    _drop_disabled_status_fields(status, before, request)
    return old.with_parts({"status": status}, metadata)


_STATUS_FIELDS: Final = (
    (features.DYNAMIC_RESOURCE_ALLOCATION, "resourceClaimStatuses"),
    (features.EXTENDED_RESOURCE, "extendedResourceClaimStatus"),
    (features.NODE_ALLOCATABLE_RESOURCES, "nodeAllocatableResourceClaimStatuses"),
)


@lru_cache(64)
def _disabled_status_fields(gates: FeatureGates) -> tuple[str, ...]:
    """The fields whose gate is off: a server has the same gates for all requests."""
    return tuple(field for gate, field in _STATUS_FIELDS if gate not in gates)


def _drop_disabled_status_fields(
    status: dict[str, Any], before: Mapping[str, Any], request: WriteRequest
) -> None:
    """Removes from a status what is behind gates that are off, unless the stored status has it."""
    for field in _disabled_status_fields(request.gates):
        if field in status and not before.get(field):
            del status[field]
    if status.keys().isdisjoint(_CONTAINER_STATUSES):
        return
    for field in _CONTAINER_STATUSES:
        if field not in status:
            continue
        statuses = status[field]
        if statuses and not any(each.get(_HEALTH) for each in before.get(field) or ()):
            status[field] = [_with_enabled_health(each, request) for each in statuses]


_HEALTH: Final = "allocatedResourcesStatus"


def _with_enabled_health(status: dict[str, Any], request: WriteRequest) -> dict[str, Any]:
    if _HEALTH not in status:
        return status
    if features.RESOURCE_HEALTH_STATUS not in request.gates:
        return {name: value for name, value in status.items() if name != _HEALTH}
    if features.RESOURCE_HEALTH_STATUS_MESSAGE in request.gates:
        return status
    without_messages = [
        resource
        | {
            "resources": [
                {name: value for name, value in health.items() if name != "message"}
                for health in resource.get("resources", [])
            ]
        }
        for resource in status[_HEALTH]
    ]
    return status | {_HEALTH: without_messages}


def validate_status_update(pod: RawObject, old: RawObject, _: WriteRequest) -> list[FieldError]:
    annotations, before = pod.metadata.annotations, old.metadata.annotations
    errors = [*validate_metadata_update(pod.metadata, old.metadata)]
    if annotations or before:
        errors += validate_pod_annotation_update(annotations, before)
        errors += validate_pod_annotations(annotations, pod.get("spec", default={}))
    errors += validate_pod_status_update(pod, old)
    errors += validate_pod_status(parts_of(pod))
    return errors
