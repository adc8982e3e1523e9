"""Pods for Windows and for Linux: fields that the other operating system has, and host process containers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.validation.fields import FieldError, FieldPath, forbidden, invalid
from allot.validation.parts import Part, part, parts, text

NOT_FOR_WINDOWS: Final = "cannot be set for a windows pod"
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_POD_CONTEXT: Final = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser",
    "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy",
)  # fmt: skip
_CONTAINER_CONTEXT: Final = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip


def validate_for_operating_system(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """What the operating system of the pod's node does not have."""
    contexts = [(part(spec, "securityContext"), path / "securityContext")]
    for field in _CONTAINERS:
        for index, container in enumerate(parts(spec, field)):
            context = part(container, "securityContext")
            contexts.append((context, path / field @ index / "securityContext"))
    match text(part(spec, "os"), "name"):
        case "windows":
            yield from _validate_for_windows(spec, contexts, path)
        case "linux":
            for context, place in contexts:
                if context.get("windowsOptions") is not None:
                    yield forbidden(
                        place / "windowsOptions", "windows options cannot be set for a linux pod"
                    )


def _validate_for_windows(
    spec: Part, contexts: list[tuple[Part, FieldPath]], path: FieldPath
) -> Iterator[FieldError]:
    for field in ("hostPID", "hostIPC"):
        if spec.get(field):
            yield forbidden(path / field, NOT_FOR_WINDOWS)
    for field in ("shareProcessNamespace", "hostUsers"):
        if spec.get(field) is not None:
            yield forbidden(path / field, NOT_FOR_WINDOWS)
    for number, (context, place) in enumerate(contexts):
        for field in _CONTAINER_CONTEXT if number else _POD_CONTEXT:
            if context.get(field) is not None:
                yield forbidden(place / field, NOT_FOR_WINDOWS)


def validate_host_processes(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """Containers that are processes of a Windows node: all of a pod's, or none."""
    whole = _is_host_process(spec)
    effective: list[bool] = []
    for field in _CONTAINERS:
        for index, container in enumerate(parts(spec, field)):
            own = _is_host_process(container)
            if own is not None and whole is not None and own != whole:
                where = path / field @ index / "securityContext" / "windowsOptions" / "hostProcess"
                shown = str(whole).lower()
                rule = f"pod hostProcess value must be identical if both are specified, was {shown}"
                yield invalid(where, own, rule)
            effective.append(bool(whole if own is None else own))
    if not any(effective):
        return
    if not all(effective):
        rule = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(path, "", rule)
    if not spec.get("hostNetwork"):
        rule = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(path / "hostNetwork", False, rule)


def _is_host_process(owner: Part) -> bool | None:
    value = part(part(owner, "securityContext"), "windowsOptions").get("hostProcess")
    return value if isinstance(value, bool) else None
