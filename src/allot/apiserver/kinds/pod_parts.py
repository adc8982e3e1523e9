"""The subresources of pods that change a part of the spec: `ephemeralcontainers` and `resize`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from allot.api.base import replace
from allot.api.core import Pod
from allot.apiserver.kinds.pod_strategy import quality_of_service
from allot.validation.fields import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from allot.validation.names import validate_label

_SPEC: Final = FieldPath("spec")
_REGULAR: Final = ("containers", "initContainers")
_EPHEMERAL: Final = _SPEC / "ephemeralContainers"
_NOT_FOR_EPHEMERAL: Final = (
    "ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources",
    "resizePolicy", "restartPolicy", "restartPolicyRules",
)  # fmt: skip
_RESIZABLE: Final = ("cpu", "memory")


def with_ephemeral_containers(new: Pod, old: Pod) -> Pod:
    """The stored pod with the ephemeral containers of the new one."""
    containers = new.get("spec", "ephemeralContainers")
    return _counted(old.with_value(containers, "spec", "ephemeralContainers"), new, old)


def with_resources(new: Pod, old: Pod) -> Pod:
    """The stored pod with the resources of the new one's containers."""
    resized = old
    for field in ("containers", "initContainers"):
        sent = {c.get("name"): c for c in new.get("spec", field, default=[])}
        stored: list[dict[str, Any]] = old.get("spec", field, default=[])
        if stored:
            kept = [_with_resources(c, sent.get(c.get("name"))) for c in stored]
            resized = resized.with_value(kept, "spec", field)
    return _counted(resized, new, old)


def _with_resources(container: dict[str, Any], sent: dict[str, Any] | None) -> dict[str, Any]:
    if sent is None:
        return container
    claims = (container.get("resources") or {}).get("claims")
    resources = {k: v for k, v in (sent.get("resources") or {}).items() if k != "claims"}
    return container | {"resources": resources | ({"claims": claims} if claims else {})}


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
    spec = new.get("spec", default={})
    others = {c.get("name") for field in _REGULAR for c in spec.get(field) or ()}
    containers = {c.get("name") for c in spec.get("containers") or ()}
    seen: set[str] = set()
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        yield from _validate_one(container, others, containers, seen, _EPHEMERAL @ index)
    now = {c.get("name"): c for c in spec.get("ephemeralContainers") or ()}
    for before in old.get("spec", "ephemeralContainers", default=[]):
        name = before.get("name")
        if name not in now:
            reason = f'existing ephemeral containers "{name}" may not be removed\n'
            yield forbidden(_EPHEMERAL, reason)
        elif now[name] != before:
            reason = f'existing ephemeral containers "{name}" may not be changed\n'
            yield forbidden(_EPHEMERAL, reason)


def _validate_one(
    container: dict[str, Any],
    others: set[Any],
    containers: set[Any],
    seen: set[str],
    path: FieldPath,
) -> Iterator[FieldError]:
    name = container.get("name") or ""
    if not name:
        yield required(path / "name")
    else:
        yield from validate_label(name, path / "name")
    if name in others or name in seen:
        yield duplicate(path / "name", name)
    seen.add(name)
    if not container.get("image"):
        yield required(path / "image")
    policy = container.get("imagePullPolicy")
    if policy not in (None, "Always", "IfNotPresent", "Never"):
        yield not_supported(path / "imagePullPolicy", policy, ("Always", "IfNotPresent", "Never"))
    target = container.get("targetContainerName")
    if target and target not in containers:
        yield not_found(path / "targetContainerName", target)
    for field in _NOT_FOR_EPHEMERAL:
        if container.get(field):
            yield forbidden(path / field, "cannot be set for an Ephemeral Container")


def validate_resize(new: Pod, old: Pod) -> Iterator[FieldError]:
    """Only cpu and memory change, and the quality of service stays."""
    for field in _REGULAR:
        before = {c.get("name"): c for c in old.get("spec", field, default=[])}
        for index, container in enumerate(new.get("spec", field, default=[])):
            stored = before.get(container.get("name"), {})
            path = _SPEC / field @ index / "resources"
            yield from _validate_amounts(container, stored, path)
    before_class, after_class = quality_of_service(old), quality_of_service(new)
    if before_class != after_class:
        reason = "Pod QOS Class may not change as a result of resizing"
        yield invalid(_SPEC, before_class, reason)


def _validate_amounts(
    container: dict[str, Any], stored: dict[str, Any], path: FieldPath
) -> Iterator[FieldError]:
    for kind in ("limits", "requests"):
        after = (container.get("resources") or {}).get(kind) or {}
        before = (stored.get("resources") or {}).get(kind) or {}
        for name in sorted({*before, *after}):
            if before.get(name) == after.get(name):
                continue
            if name not in _RESIZABLE:
                yield forbidden(path / kind, f"only cpu and memory resources are mutable: {name}")
            elif name not in after:
                yield forbidden(path / kind, f"resource {kind} cannot be removed")
