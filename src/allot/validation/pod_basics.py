"""The basic parts of a pod's spec: containers, ports, volumes and mounts.

Claims are in `pod`, placement is in `pod_placement`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from allot.validation.container_resources import NOT_NEGATIVE, validate_container_resources
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
from allot.validation.parts import Part, parts
from allot.validation.pod_placement import validate_pod_placement

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
PORT_RANGE: Final = "must be between 1 and 65535, inclusive"
PADDED: Final = "must not have leading or trailing whitespace"
_PORTS: Final = range(1, 65536)


def validate_pod_basics(spec: Part, path: FieldPath) -> Iterator[FieldError]:
    """The spec of a pod or of a pod template, with defaults."""
    volumes = parts(spec, "volumes")
    yield from _validate_volume_names(volumes, path / "volumes")
    containers = parts(spec, "containers")
    if not containers:
        yield required(path / "containers")
    volume_names = {volume.get("name") for volume in volumes}
    seen: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(parts(spec, field)):
            yield from _validate_container(container, volume_names, seen, path / field @ index)
    for field, allowed in (("restartPolicy", RESTART_POLICIES), ("dnsPolicy", DNS_POLICIES)):
        if field in spec and spec[field] not in allowed:
            yield not_supported(path / field, spec[field], allowed)
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        yield invalid(path / "terminationGracePeriodSeconds", grace, NOT_NEGATIVE)
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden(
            path / "nodeName", "cannot be set until all schedulingGates have been cleared"
        )
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline < 2**31:
        yield invalid(
            path / "activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive"
        )
    yield from validate_pod_placement(spec, path)


def _validate_volume_names(volumes: list[Part], path: FieldPath) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        name = volume.get("name") or ""
        name_path = path @ index / "name"
        if not name:
            yield required(name_path)
            continue
        yield from validate_label(name, name_path)
        if name in seen:
            yield duplicate(name_path, name)
        seen.add(name)


def _validate_container(
    container: Part, volumes: set[Any], seen: set[str], path: FieldPath
) -> Iterator[FieldError]:
    """Adds its name to `seen`."""
    name, image = container.get("name") or "", container.get("image") or ""
    if not name:
        yield required(path / "name")
    else:
        yield from validate_label(name, path / "name")
        if name in seen:
            yield duplicate(path / "name", name)
        seen.add(name)
    if not image:
        yield required(path / "image")
    elif image != image.strip():
        yield invalid(path / "image", image, PADDED)
    policy = container.get("imagePullPolicy")
    if policy is not None and policy not in PULL_POLICIES:
        yield not_supported(path / "imagePullPolicy", policy, PULL_POLICIES)
    yield from _validate_ports(parts(container, "ports"), path / "ports")
    yield from _validate_mounts(parts(container, "volumeMounts"), volumes, path / "volumeMounts")
    yield from validate_container_resources(container.get("resources") or {}, path / "resources")


def _validate_ports(ports: list[Part], path: FieldPath) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        number, name = port.get("containerPort") or 0, port.get("name")
        if not number:
            yield required(path @ index / "containerPort")
        elif number not in _PORTS:
            yield invalid(path @ index / "containerPort", number, PORT_RANGE)
        if name and name in names:
            yield duplicate(path @ index / "name", name)
        names.add(name or "")


def _validate_mounts(
    mounts: list[Part], volumes: set[Any], path: FieldPath
) -> Iterator[FieldError]:
    mounted: set[str] = set()
    for index, mount in enumerate(mounts):
        name, where = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(path @ index / "name")
        elif name not in volumes:
            yield not_found(path @ index / "name", name)
        if not where:
            yield required(path @ index / "mountPath")
        elif where in mounted:
            yield invalid(path @ index / "mountPath", where, "must be unique")
        mounted.add(where)
