"""Policy rules: what one rule of a role allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from allot.apiserver.auth.authorization import Attributes
from allot.validation.parts import parts, texts

ANY: Final = "*"


class PolicyRule(NamedTuple):
    """One rule: verbs on resources of groups, optionally limited to object names; or verbs on paths."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()

    @classmethod
    def all_of(cls, role: Mapping[str, Any]) -> tuple[PolicyRule, ...]:
        """The rules of a Role or ClusterRole."""
        return tuple(cls.from_document(rule) for rule in parts(role, "rules"))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> PolicyRule:
        return cls(
            texts(document, "verbs"),
            texts(document, "apiGroups"),
            texts(document, "resources"),
            texts(document, "resourceNames"),
            texts(document, "nonResourceURLs"),
        )

    def to_document(self) -> dict[str, Any]:
        """The rule as the API shows it: verbs first, empty lists left out."""
        shown: dict[str, Any] = {"verbs": list(self.verbs)}
        for name, values in (
            ("apiGroups", self.api_groups),
            ("resources", self.resources),
            ("resourceNames", self.resource_names),
            ("nonResourceURLs", self.non_resource_urls),
        ):
            if values:
                shown[name] = list(values)
        return shown

    def allows(self, attributes: Attributes) -> bool:
        if not attributes.resource:
            return self.has_verb(attributes.verb) and self.has_path(attributes.path)
        return self.has_kind(
            attributes.verb, attributes.group, attributes.resource
        ) and self.has_name(attributes.name)

    def has_kind(self, verb: str, group: str, resource: str) -> bool:
        """Whether it matches this verb on this resource, for any name."""
        return (
            self.has_verb(verb)
            and (group in self.api_groups or ANY in self.api_groups)
            and self.has_resource(resource)
        )

    def has_verb(self, verb: str) -> bool:
        return verb in self.verbs or ANY in self.verbs

    def has_resource(self, resource: str) -> bool:
        return any(each in self.resources for each in resource_patterns(resource))

    def has_name(self, name: str) -> bool:
        return not self.resource_names or name in self.resource_names

    def has_path(self, path: str) -> bool:
        return any(path_matches(pattern, path) for pattern in self.non_resource_urls)


def resource_patterns(resource: str) -> tuple[str, ...]:
    """What a rule may say about it: `*` is every resource and subresource, `*/scale` that subresource of every resource."""
    _, slash, subresource = resource.partition("/")
    return (resource, ANY, f"*/{subresource}") if slash else (resource, ANY)


def path_matches(pattern: str, path: str) -> bool:
    """Whether a pattern such as `/apis/*` matches a path."""
    if pattern in (ANY, path):
        return True
    return pattern.endswith("*") and path.startswith(pattern.rstrip("*"))
