"""Annotations of pods that mean something to Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from allot.validation.fields import FieldError, FieldPath, forbidden, invalid
from allot.validation.parts import Part, part, parts, text

MIRROR: Final = "kubernetes.io/config.mirror"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_ANNOTATIONS: Final = FieldPath("metadata") / "annotations"
_PROFILES: Final = ("runtime/default", "unconfined")
_LOCAL: Final = "localhost/"
_TYPES: Final = {"runtime/default": "RuntimeDefault", "unconfined": "Unconfined"}
_is_number: Final = re.compile(r"0|-?[1-9]\d*").fullmatch
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


def validate_pod_annotations(annotations: Mapping[str, str], spec: Part) -> Iterator[FieldError]:
    if MIRROR in annotations and not text(spec, "nodeName"):
        rule = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid(_ANNOTATIONS @ MIRROR, annotations[MIRROR], rule)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not (_is_number(cost) and -(2**31) <= int(cost) < 2**31):
        yield invalid(_ANNOTATIONS @ DELETION_COST, cost, "must be a 32bit integer")
    for name, value in annotations.items():
        if name == SECCOMP_OF_POD or name.startswith(SECCOMP):
            if not _is_seccomp_profile(value):
                yield invalid(_ANNOTATIONS / name, value, "must be a valid seccomp profile")
        elif name.startswith(APP_ARMOR):
            yield from _validate_app_armor(name, value, spec)


def _is_seccomp_profile(value: str) -> bool:
    if value.startswith(_LOCAL):
        file = value.removeprefix(_LOCAL)
        return not file.startswith("/") and ".." not in file.split("/")
    return value in (*_PROFILES, "docker/default")


def _validate_app_armor(name: str, value: str, spec: Part) -> Iterator[FieldError]:
    container = name.removeprefix(APP_ARMOR)
    names = {text(one, "name") for field in _CONTAINERS for one in parts(spec, field)}
    if container not in names:
        yield invalid(_ANNOTATIONS @ name, container, "container not found")
    for field in _CONTAINERS:
        for index, one in enumerate(parts(spec, field)):
            if text(one, "name") != container:
                continue
            type_ = text(part(part(one, "securityContext"), "appArmorProfile"), "type")
            wanted = annotated_profile(value).get("type")
            if type_ and wanted and type_ != wanted:
                path = FieldPath("spec") / field @ index / "securityContext" / "appArmorProfile"
                rule = "apparmor type in annotation and field must match"
                yield forbidden(path / "type", rule)
    if value and value not in _PROFILES and not value.startswith(_LOCAL):
        rule = f'invalid AppArmor profile name: "{value}"'
        yield invalid(_ANNOTATIONS @ name, value, rule)


def annotated_profile(value: str) -> dict[str, str]:
    """The AppArmor profile that an annotation means; an empty one if it means none."""
    if value.startswith(_LOCAL) and value != _LOCAL:
        return {"type": "Localhost", "localhostProfile": value.removeprefix(_LOCAL)}
    return {"type": _TYPES[value]} if value in _TYPES else {}


def validate_pod_annotation_update(
    new: Mapping[str, str], old: Mapping[str, str]
) -> Iterator[FieldError]:
    """Whether a pod is a mirror of a static one is said when it is created."""
    if new.get(MIRROR) == old.get(MIRROR):
        return
    change = "remove or update" if MIRROR in old else "add"
    yield forbidden(_ANNOTATIONS @ MIRROR, f"may not {change} mirror pod annotation")
