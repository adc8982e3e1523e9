"""Annotations of pods and pod templates that mean something to Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from allot.validation.fields import FieldError, FieldPath, forbidden, invalid
from allot.validation.parts import Part, parts, text
from allot.validation.profile_annotations import APP_ARMOR, LOCAL, SECCOMP, SECCOMP_OF_POD

MIRROR: Final = "kubernetes.io/config.mirror"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_ANNOTATIONS: Final = FieldPath("metadata") / "annotations"
_PROFILES: Final = ("runtime/default", "unconfined")
_is_number: Final = re.compile(r"0|-?[1-9]\d*").fullmatch
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


def validate_pod_annotations(
    annotations: Mapping[str, str], spec: Part, path: FieldPath = _ANNOTATIONS
) -> Iterator[FieldError]:
    if MIRROR in annotations and not text(spec, "nodeName"):
        rule = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid(path @ MIRROR, annotations[MIRROR], rule)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not (_is_number(cost) and -(2**31) <= int(cost) < 2**31):
        yield invalid(path @ DELETION_COST, cost, "must be a 32bit integer")
    containers: frozenset[str] | None = None
    for name, value in annotations.items():
        if name == SECCOMP_OF_POD or name.startswith(SECCOMP):
            if not _is_seccomp_profile(value):
                yield invalid(path / name, value, "must be a valid seccomp profile")
        elif name.startswith(APP_ARMOR):
            if containers is None:
                containers = _container_names(spec)
            yield from _validate_app_armor(name, value, containers, path)


def _is_seccomp_profile(value: str) -> bool:
    if value.startswith(LOCAL):
        file = value.removeprefix(LOCAL)
        return not file.startswith("/") and ".." not in file.split("/")
    return value in (*_PROFILES, "docker/default")


def _container_names(spec: Part) -> frozenset[str]:
    return frozenset(text(one, "name") for field in _CONTAINERS for one in parts(spec, field))


def _validate_app_armor(
    name: str, value: str, containers: frozenset[str], path: FieldPath
) -> Iterator[FieldError]:
    container = name.removeprefix(APP_ARMOR)
    if container not in containers:
        yield invalid(path @ name, container, "container not found")
    if value and value not in _PROFILES and not value.startswith(LOCAL):
        rule = f'invalid AppArmor profile name: "{value}"'
        yield invalid(path @ name, value, rule)


def validate_pod_annotation_update(
    new: Mapping[str, str], old: Mapping[str, str]
) -> Iterator[FieldError]:
    """Whether a pod is a mirror of a static one, and its AppArmor profiles, are said when it is created."""
    for name in dict.fromkeys((*old, *new)):
        what = "mirror pod annotation" if name == MIRROR else "AppArmor annotations"
        is_kept = name == MIRROR or name.startswith(APP_ARMOR)
        if is_kept and new.get(name) != old.get(name):
            change = "remove or update" if name in old else "add"
            yield forbidden(_ANNOTATIONS @ name, f"may not {change} {what}")
