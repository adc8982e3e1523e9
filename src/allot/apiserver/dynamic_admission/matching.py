"""Whether a policy, binding or webhook matches a request: rules, selectors, equivalent versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from allot.api.selectors import selects_labels
from allot.apiserver.dynamic_admission.review_request import ReviewRequest
from allot.apiserver.kinds.resources import Resource


class ResourceRule(NamedTuple):
    """Operations on resources."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """Plural and subresource; either may be `*`."""
    scope: str
    names: frozenset[str]

    def may_match(self, operation: str, resource: Resource, subresource: str) -> bool:
        """Whether it matches such requests in some version, namespace and name."""
        return (
            _has(self.operations, operation)
            and _has(self.groups, resource.group)
            and any(
                plural in ("*", resource.plural) and part in ("*", subresource)
                for plural, part in self.resources
            )
        )

    def matches(self, request: ReviewRequest, version: str) -> bool:
        if self.names and request.name not in self.names:  # quick, and there may be thousands
            return False
        return (
            self.may_match(request.operation, request.resource, request.info.subresource)
            and _has(self.versions, version)
            and self._has_scope(request)
        )

    def _has_scope(self, request: ReviewRequest) -> bool:
        is_namespaced = bool(request.namespace) and not request.is_about_namespace
        return self.scope == "*" or (self.scope == "Namespaced") == is_namespaced


def _has(allowed: frozenset[str], value: str) -> bool:
    return value in allowed or "*" in allowed


def read_rules(rules: Sequence[Mapping[str, Any]]) -> tuple[ResourceRule, ...]:
    return tuple(
        ResourceRule(
            frozenset(rule.get("operations") or ()),
            frozenset(rule.get("apiGroups") or ()),
            frozenset(rule.get("apiVersions") or ()),
            tuple(_split(resource) for resource in rule.get("resources") or ()),
            rule.get("scope") or "*",
            frozenset(rule.get("resourceNames") or ()),
        )
        for rule in rules
    )


def _split(resource: str) -> tuple[str, str]:
    plural, _, part = resource.partition("/")
    return plural, part


class Match(NamedTuple):
    """What a policy, binding or webhook is about."""

    rules: tuple[ResourceRule, ...]
    excluded: tuple[ResourceRule, ...]
    is_exact: bool
    namespace_selector: Mapping[str, Any]
    object_selector: Mapping[str, Any]
    matches_all: bool = False
    """Whether no rules mean every request."""

    def may_match(self, operation: str, resource: Resource, subresource: str) -> bool:
        return (not self.rules and self.matches_all) or any(
            rule.may_match(operation, resource, subresource) for rule in self.rules
        )

    def version_for(
        self, request: ReviewRequest, namespace_labels: Mapping[str, str] | None
    ) -> str | None:
        """The version in which it sees the object; None if it does not match.

        `namespace_labels` are those of the request's namespace; None if it has none.
        """
        if not self._selects_namespace(namespace_labels):
            return None
        if self.object_selector and not any(
            selects_labels(self.object_selector, labels) for labels in request.labels()
        ):
            return None
        if self._found(self.excluded, request) is not None:
            return None
        if not self.rules and self.matches_all:
            return request.info.version
        return self._found(self.rules, request)

    def _selects_namespace(self, labels: Mapping[str, str] | None) -> bool:
        return (
            not self.namespace_selector
            or labels is None
            or selects_labels(self.namespace_selector, labels)
        )

    def _found(self, rules: tuple[ResourceRule, ...], request: ReviewRequest) -> str | None:
        return next(
            (
                version
                for version in self._versions(request)
                if any(rule.matches(request, version) for rule in rules)
            ),
            None,
        )

    def _versions(self, request: ReviewRequest) -> Iterator[str]:
        asked, resource = request.info.version, request.resource
        yield asked
        if not self.is_exact:
            custom = resource.custom
            versions = resource.versions if custom is None else tuple(custom.kind.versions)
            yield from (version for version in versions if version != asked)


def read_match(resources: Mapping[str, Any], *, matches_all: bool = False) -> Match:
    """`matchConstraints` of a policy, or `matchResources` of a binding."""
    return Match(
        read_rules(resources.get("resourceRules") or ()),
        read_rules(resources.get("excludeResourceRules") or ()),
        resources.get("matchPolicy") == "Exact",
        resources.get("namespaceSelector") or {},
        resources.get("objectSelector") or {},
        matches_all,
    )


def webhook_match(hook: Mapping[str, Any]) -> Match:
    return read_match({**hook, "resourceRules": hook.get("rules") or ()})
