"""Audit policies: the level of each request, from the first rule that matches."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from allot.apiserver.auth.authentication import User
from allot.apiserver.auth.authorization import Attributes
from allot.apiserver.auth.rbac.rules import path_matches
from allot.validation.parts import parts, text, texts

STAGES: Final = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")


class AuditPolicyError(Exception):
    """The policy file cannot be used; the message says why."""


class Level(IntEnum):
    """The audit level of a request."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3

    @property
    def shown(self) -> str:
        return _LEVEL_NAMES[self]


_LEVEL_NAMES: Final = ("None", "Metadata", "Request", "RequestResponse")
_LEVELS: Final = dict(zip(_LEVEL_NAMES, Level, strict=True))


class GroupResources(NamedTuple):
    """Resources of one group, optionally limited to object names. Without resources, the whole group."""

    group: str
    resources: tuple[str, ...]
    names: tuple[str, ...]

    def matches(self, attributes: Attributes) -> bool:
        if attributes.group != self.group:
            return False
        if not self.resources:
            return True
        if self.names and attributes.name not in self.names:
            return False
        plural, slash, part = attributes.resource.partition("/")
        accepted = {"*", attributes.resource}
        if slash:
            accepted |= {f"{plural}/*", f"*/{part}"}
        return not accepted.isdisjoint(self.resources)


class AuditRule(NamedTuple):
    """A level for the requests that match all given fields."""

    level: Level
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    omitted_stages: frozenset[str] = frozenset()

    def matches(self, user: User, attributes: Attributes) -> bool:
        if self.users and user.name not in self.users:
            return False
        if self.groups and not set(self.groups) & set(user.groups):
            return False
        if self.verbs and attributes.verb not in self.verbs:
            return False
        if self.resources or self.namespaces:
            return bool(attributes.resource) and self._matches_resource(attributes)
        if self.paths:
            return not attributes.resource and any(
                path_matches(pattern, attributes.path) for pattern in self.paths
            )
        return True

    def _matches_resource(self, attributes: Attributes) -> bool:
        if self.namespaces and attributes.namespace not in self.namespaces:
            return False
        return not self.resources or any(each.matches(attributes) for each in self.resources)


class AuditLevelDecision(NamedTuple):
    """The level of a request, and the stages that are omitted."""

    level: Level
    omitted_stages: frozenset[str] = frozenset()


NOT_LOGGED: Final = AuditLevelDecision(Level.NONE)


@cache
def _decision(
    level: Level, omitted_stages: frozenset[str], also_omitted: frozenset[str]
) -> AuditLevelDecision:
    return AuditLevelDecision(level, omitted_stages | also_omitted)


class AuditPolicy(NamedTuple):
    """Rules in order. Requests that match no rule are not logged."""

    rules: tuple[AuditRule, ...]
    omitted_stages: frozenset[str] = frozenset()

    @property
    def max_level(self) -> Level:
        """The most that is logged of any request."""
        return max((rule.level for rule in self.rules), default=Level.NONE)

    def decide(self, user: User, attributes: Attributes) -> AuditLevelDecision:
        for rule in self.rules:
            if rule.matches(user, attributes):
                return _decision(rule.level, self.omitted_stages, rule.omitted_stages)
        return NOT_LOGGED


def read_policy(path: Path) -> AuditPolicy:
    """The policy in a file, as kube-apiserver reads it."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise AuditPolicyError(f"{path}: {error}") from error
    if not isinstance(document, dict) or (document.get("apiVersion"), document.get("kind")) != (
        "audit.k8s.io/v1",
        "Policy",
    ):
        raise AuditPolicyError(f"{path}: not a Policy of audit.k8s.io/v1")
    rules = parts(document, "rules")
    if not rules:
        raise AuditPolicyError(f"{path}: rules: at least one rule is required")
    found = tuple(_rule(rule, f"{path}: rules[{index}]") for index, rule in enumerate(rules))
    return AuditPolicy(found, _stages(document, str(path)))


def _rule(rule: Mapping[str, Any], where: str) -> AuditRule:
    level = _LEVELS.get(text(rule, "level"))
    if level is None:
        raise AuditPolicyError(
            f"{where}.level: {text(rule, 'level')!r} is unknown; available: {', '.join(_LEVELS)}"
        )
    paths, resources = texts(rule, "nonResourceURLs"), parts(rule, "resources")
    if paths and (resources or rule.get("namespaces")):
        raise AuditPolicyError(
            f"{where}.nonResourceURLs: rules cannot apply to both regular resources and non-resource URLs"
        )
    return AuditRule(
        level,
        texts(rule, "users"),
        texts(rule, "userGroups"),
        texts(rule, "verbs"),
        tuple(
            GroupResources(
                text(each, "group"), texts(each, "resources"), texts(each, "resourceNames")
            )
            for each in resources
        ),
        texts(rule, "namespaces"),
        paths,
        _stages(rule, where),
    )


def _stages(owner: Mapping[str, Any], where: str) -> frozenset[str]:
    stages = texts(owner, "omitStages")
    for stage in stages:
        if stage not in STAGES:
            raise AuditPolicyError(
                f"{where}.omitStages: {stage!r} is unknown; available: {', '.join(STAGES)}"
            )
    return frozenset(stages)
