"""The subresources of pods that change a part of the spec: `ephemeralcontainers` and `resize`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from allot.api.base import replace
from allot.api.core import Pod
from allot.api.quantity import quantity_from_json
from allot.apiserver.kinds.pod_strategy import quality_of_service, value_diff
from allot.validation.fields import FieldError, FieldPath, forbidden, invalid
from allot.validation.internal_types import internal_value
from allot.validation.pod import MIRROR_ANNOTATION

_SPEC: Final = FieldPath("spec")
_EPHEMERAL: Final = _SPEC / "ephemeralContainers"
_RESIZABLE: Final = ("cpu", "memory")


def with_ephemeral_containers(new: Pod, old: Pod) -> Pod:
    """The stored pod with the ephemeral containers of the new one."""
    containers = new.get("spec", "ephemeralContainers")
    return _counted(old.with_value(containers, "spec", "ephemeralContainers"), new, old)


def with_resources(new: Pod, old: Pod) -> Pod:
    """The stored pod with the resources and resize policies of the new one's containers.

    Containers that it does not have are kept, to be refused.
    """
    resized = old
    for field in ("containers", "initContainers"):
        stored = {c.get("name"): c for c in old.get("spec", field, default=[])}
        sent: list[dict[str, Any]] = new.get("spec", field, default=[])
        if stored or sent:
            merged = [_resized(stored.get(c.get("name")), c) for c in sent]
            resized = resized.with_value(merged, "spec", field)
    resources, stored_resources = (pod.get("spec", "resources") for pod in (new, old))
    if resources and stored_resources is None:
        resources = _with_limits(resources, resized)
    if resources is not None and resources != stored_resources:
        resized = resized.with_value(resources, "spec", "resources")
    return _counted(resized, new, old)


def _with_limits(resources: dict[str, Any], pod: Pod) -> dict[str, Any]:
    """Resources of a pod that had none of its own are limited as its containers are together."""
    limits = dict(resources.get("limits") or {})
    containers = pod.get("spec", "containers", default=[])
    for name in _RESIZABLE:
        amounts = [_amounts(container, "limits").get(name) for container in containers]
        if name not in limits and all(amount is not None for amount in amounts):
            quantities = [quantity_from_json(amount) for amount in amounts]
            limits[name] = str(sum(quantities[1:], quantities[0]))
    return resources | {"limits": limits} if limits else resources


def _resized(stored: dict[str, Any] | None, sent: dict[str, Any]) -> dict[str, Any]:
    if stored is None:
        return sent
    kept = {name: value for name, value in stored.items() if name not in _RESIZED}
    return kept | {name: sent[name] for name in _RESIZED if name in sent}


_RESIZED: Final = ("resources", "resizePolicy")


def _counted(pod: Pod, new: Pod, old: Pod) -> Pod:
    metadata = new.metadata
    stored = old.metadata
    generation = stored.generation
    if pod.get("spec") != old.get("spec") and generation:
        generation += 1
    kept = replace(
        stored,
        resource_version=metadata.resource_version or stored.resource_version,
        managed_fields=metadata.managed_fields,
        generation=generation,
    )
    return pod.with_metadata(kept)


def validate_ephemeral_containers(new: Pod, old: Pod) -> Iterator[FieldError]:
    """Those that are there stay as they are."""
    now = {c.get("name"): c for c in new.get("spec", "ephemeralContainers", default=[])}
    for before in old.get("spec", "ephemeralContainers", default=[]):
        name = before.get("name")
        if name not in now:
            reason = f'existing ephemeral containers "{name}" may not be removed\n'
            yield forbidden(_EPHEMERAL, reason)
        elif now[name] != before:
            kind = "EphemeralContainer"
            change = value_diff(internal_value(before, kind), internal_value(now[name], kind))
            reason = f'existing ephemeral containers "{name}" may not be changed\n{change}'
            yield forbidden(_EPHEMERAL, reason)


def validate_resize(new: Pod, old: Pod) -> Iterator[FieldError]:
    """Only cpu and memory change, and the quality of service stays."""
    before_class, after_class = quality_of_service(old), quality_of_service(new)
    if before_class != after_class:
        reason = "Pod QOS Class may not change as a result of resizing"
        yield invalid(_SPEC, before_class, reason)
    changed = [
        forbidden(_SPEC / field, f"{field} may not be added or removed on resize")
        for field in ("containers", "initContainers")
        if _names(new, field) != _names(old, field)
    ]
    if changed:
        yield from changed
        return
    for field in ("initContainers", "containers"):
        for index, (after, before) in enumerate(_pairs(new, old, field)):
            if field == "containers" or _is_sidecar(before):
                yield from _validate_nothing_removed(after, before, _SPEC / field @ index)
    if new.get("spec", "resources") == {} and old.get("spec", "resources") is None:
        yield forbidden(_SPEC, "only cpu and memory resources are mutable")
    for after, before in _pairs(new, old, "containers"):
        if _without_resizable(after) != _without_resizable(before):
            yield forbidden(_SPEC, "only cpu and memory resources are mutable")
    for after, before in _pairs(new, old, "initContainers"):
        if _without_resizable(after) != _without_resizable(before):
            whose = "sidecar" if _is_sidecar(before) else "init"
            yield forbidden(
                _SPEC, f"only cpu and memory resources for {whose} containers are mutable"
            )


def _names(pod: Pod, field: str) -> list[Any]:
    return [container.get("name") for container in pod.get("spec", field, default=[])]


def _pairs(new: Pod, old: Pod, field: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Containers after and before. A resize adds and removes none."""
    after, before = (pod.get("spec", field, default=[]) for pod in (new, old))
    return list(zip(after, before, strict=True))


def _is_sidecar(container: dict[str, Any]) -> bool:
    return container.get("restartPolicy") == "Always"


def _amounts(container: dict[str, Any], kind: str) -> dict[str, Any]:
    return (container.get("resources") or {}).get(kind) or {}


def _validate_nothing_removed(
    after: dict[str, Any], before: dict[str, Any], path: FieldPath
) -> Iterator[FieldError]:
    for kind in ("requests", "limits"):
        if _amounts(before, kind).keys() - _amounts(after, kind).keys():
            yield forbidden(path / "resources" / kind, f"resource {kind} cannot be removed")


def _without_resizable(container: dict[str, Any]) -> dict[str, Any]:
    """The container without what a resize may change."""
    resources = container.get("resources") or {}
    kept = {
        kind: {name: amount for name, amount in value.items() if name not in _RESIZABLE}
        if kind in ("requests", "limits")
        else value
        for kind, value in resources.items()
    }
    return container | {"resources": {kind: value for kind, value in kept.items() if value}}


def refused_part(pod: Pod, part: str) -> FieldError | None:
    """The error of a pod that has no such part to change, which hides all others."""
    if MIRROR_ANNOTATION in pod.metadata.annotations:
        reason = (
            "do not support ephemeral containers"
            if part == "ephemeralcontainers"
            else "cannot be resized"
        )
        return forbidden(FieldPath("[]"), f"static pods {reason}")
    if part == "resize" and pod.get("spec", "os", "name") == "windows":
        return forbidden(FieldPath("[]"), "windows pods cannot be resized")
    return None
