"""What containers see of their pod's volumes: mounts, and block devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from allot.validation.fields import (
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from allot.validation.parts import Part, part, parts, text

PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
RECURSIVE_READ_ONLY: Final = ("Disabled", "Enabled", "IfPossible")
UNIQUE: Final = "must be unique"
Volumes = Mapping[str, Part]
"""By name."""


def volumes_by_name(spec: Part) -> Volumes:
    return {text(volume, "name"): volume for volume in parts(spec, "volumes")}


def validate_mounts(container: Part, volumes: Volumes, path: FieldPath) -> Iterator[FieldError]:
    """`volumeMounts` of a container."""
    mounts = parts(container, "volumeMounts")
    if not mounts:
        return
    devices = {text(d, "name"): text(d, "devicePath") for d in parts(container, "volumeDevices")}
    device_paths = frozenset(devices.values())
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        one = path @ index
        name, where = text(mount, "name"), text(mount, "mountPath")
        if not name:
            yield required(one / "name")
        if name not in volumes:
            yield not_found(one / "name", name)
        if not where:
            yield required(one / "mountPath")
        if where in seen:
            yield invalid(one / "mountPath", where, UNIQUE)
        seen.add(where)
        if name in devices:
            yield invalid(one / "name", name, "must not already exist in volumeDevices")
        if where in device_paths:
            yield invalid(
                one / "mountPath", where, "must not already exist as a path in volumeDevices"
            )
        yield from _validate_sub_paths(mount, one, path)
        yield from _validate_propagation(mount, container, path / "mountPropagation")
        yield from _validate_recursion(mount, path / "recursiveReadOnly")


def _validate_sub_paths(mount: Part, path: FieldPath, list_path: FieldPath) -> Iterator[FieldError]:
    """Some of these errors do not say which mount they are about, as in Kubernetes."""
    plain, expression = text(mount, "subPath"), text(mount, "subPathExpr")
    if plain:
        yield from validate_descending_path(plain, list_path / "subPath")
    if expression:
        if plain:
            yield invalid(
                path / "subPathExpr", expression, "subPathExpr and subPath are mutually exclusive"
            )
        yield from validate_descending_path(expression, list_path / "subPathExpr")


def validate_descending_path(where: str, path: FieldPath) -> Iterator[FieldError]:
    """A path below a directory."""
    if where.startswith("/"):
        yield invalid(path, where, "must be a relative path")
    if ".." in where.split("/"):
        yield invalid(path, where, "must not contain '..'")


def _validate_propagation(mount: Part, container: Part, path: FieldPath) -> Iterator[FieldError]:
    propagation = mount.get("mountPropagation")
    if propagation is None:
        return
    if propagation not in PROPAGATIONS:
        yield not_supported(path, propagation, PROPAGATIONS)
    elif propagation == "Bidirectional" and not part(container, "securityContext").get(
        "privileged"
    ):
        yield forbidden(
            path, "Bidirectional mount propagation is available only to privileged containers"
        )


def _validate_recursion(mount: Part, path: FieldPath) -> Iterator[FieldError]:
    mode = mount.get("recursiveReadOnly")
    if mode is None or mode == "Disabled":
        return
    if mode not in RECURSIVE_READ_ONLY:
        yield not_supported(path, mode, RECURSIVE_READ_ONLY)
        return
    if not mount.get("readOnly"):
        yield forbidden(path, "may only be specified when readOnly is true")
    if mount.get("mountPropagation") not in (None, "None"):
        yield forbidden(
            path, "may only be specified when mountPropagation is None or not specified"
        )


def validate_devices(container: Part, volumes: Volumes, path: FieldPath) -> Iterator[FieldError]:
    """`volumeDevices` of a container."""
    devices = parts(container, "volumeDevices")
    if not devices:
        return
    mounts = {text(m, "name"): text(m, "mountPath") for m in parts(container, "volumeMounts")}
    mount_paths = frozenset(mounts.values())
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        one = path @ index
        name, where = text(device, "name"), text(device, "devicePath")
        volume = volumes.get(name)
        if not name:
            yield required(one / "name")
        if name in names:
            yield invalid(one / "name", name, UNIQUE)
        if volume is None:
            yield not_found(one / "name", name)
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            yield invalid(
                one / "name",
                name,
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
            )
        if not where:
            yield required(one / "devicePath")
        if where in paths:
            yield invalid(one / "devicePath", where, UNIQUE)
        if ".." in where.split("/"):
            yield invalid(one / "devicePath", where, "can not contain backsteps ('..')")
        else:
            paths.add(where)
        if name in mounts:
            yield invalid(one / "name", name, "must not already exist in volumeMounts")
        if where in mount_paths:
            yield invalid(
                one / "devicePath", where, "must not already exist as a path in volumeMounts"
            )
        names |= {name} - {""}
