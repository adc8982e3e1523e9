"""Roles and their bindings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from allot.api.raw import RawObject
from allot.validation.fields import (
    FieldError,
    FieldPath,
    invalid,
    not_supported,
    required,
)
from allot.validation.internal_types import internal_value
from allot.validation.parts import parts

GROUP: Final = "rbac.authorization.k8s.io"
ROLE_REF: Final = FieldPath("roleRef")


def validate_role(role: RawObject) -> Iterator[FieldError]:
    """A Role or ClusterRole."""
    namespaced = role.kind == "Role"
    for index, rule in enumerate(parts(role.data, "rules")):
        yield from _validate_rule(rule, FieldPath("rules") @ index, namespaced=namespaced)


def _validate_rule(
    rule: Mapping[str, Any], path: FieldPath, *, namespaced: bool
) -> Iterator[FieldError]:
    yield from _validate_targets(rule, path, namespaced=namespaced)
    if not rule.get("verbs"):
        yield required(path / "verbs")


def _validate_targets(
    rule: Mapping[str, Any], path: FieldPath, *, namespaced: bool
) -> Iterator[FieldError]:
    urls, resources = rule.get("nonResourceURLs"), rule.get("resources")
    groups = rule.get("apiGroups")
    if urls:
        if namespaced:
            yield invalid(
                path / "nonResourceURLs",
                urls,
                "namespaced rules cannot apply to non-resource URLs",
            )
        if groups or resources or rule.get("resourceNames"):
            yield invalid(
                path / "nonResourceURLs",
                urls,
                "rules cannot apply to both regular resources and non-resource URLs",
            )
        return
    if not groups:
        yield required(path / "apiGroups", "resource rules must supply at least one api group")
    if not resources:
        yield required(path / "resources", "resource rules must supply at least one resource")


def validate_role_binding(binding: RawObject) -> Iterator[FieldError]:
    """A RoleBinding or ClusterRoleBinding."""
    cluster_wide = binding.kind == "ClusterRoleBinding"
    reference = binding.get("roleRef", default={})
    group, kind = reference.get("apiGroup") or "", reference.get("kind") or ""
    if group != GROUP:
        yield not_supported(ROLE_REF / "apiGroup", group, [GROUP])
    allowed = ["ClusterRole"] if cluster_wide else ["Role", "ClusterRole"]
    if kind not in allowed:
        yield not_supported(ROLE_REF / "kind", kind, allowed)
    if not reference.get("name"):
        yield required(ROLE_REF / "name")
    for index, subject in enumerate(parts(binding.data, "subjects")):
        yield from _validate_subject(subject, FieldPath("subjects") @ index)


_SUBJECT_GROUPS: Final = {"ServiceAccount": "", "User": GROUP, "Group": GROUP}


def _validate_subject(subject: Mapping[str, Any], path: FieldPath) -> Iterator[FieldError]:
    kind, group = subject.get("kind") or "", subject.get("apiGroup") or ""
    if not subject.get("name"):
        yield required(path / "name")
    if kind not in _SUBJECT_GROUPS:
        yield not_supported(path / "kind", kind, _SUBJECT_GROUPS)
        return
    if group != _SUBJECT_GROUPS[kind]:
        yield not_supported(path / "apiGroup", group, [_SUBJECT_GROUPS[kind]])
    if kind == "ServiceAccount" and not subject.get("namespace"):
        yield required(path / "namespace")


def validate_role_binding_update(new: RawObject, old: RawObject) -> Iterator[FieldError]:
    """The role of a binding is immutable; its subjects are not."""
    if new.get("roleRef") != old.get("roleRef"):
        reference = internal_value(new.get("roleRef", default={}), "RoleRef")
        yield invalid(ROLE_REF, reference, "field is immutable")
