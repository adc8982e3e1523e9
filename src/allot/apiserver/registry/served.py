"""What one server serves: the table of `resources` as far as the feature gates allow.

A resource whose gate is off is not there: not in URLs, discovery and OpenAPI. What is stored of it stays, and is back
when the gate is on again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

from allot.api.identities import GroupVersion
from allot.apiserver.kinds.resources import RESOURCES, Resource, preference
from allot.features import DEFAULTS, FeatureGates


class ServedResources:
    """The resources of one server, by group, version and name."""

    def __init__(self, gates: FeatureGates, resources: Iterable[Resource] = RESOURCES) -> None:
        self._gates = gates
        self.resources: Final = tuple(
            resource for resource in resources if resource.is_served(gates)
        )
        self._by_plural: Final[Mapping[tuple[str, str, str], Resource]] = {
            (resource.group, version, resource.plural): resource
            for resource in self.resources
            for version in resource.versions
        }

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """In the order in which discovery lists them."""
        return tuple(dict.fromkeys(resource.group for resource in self.resources))

    def find(self, group_version: GroupVersion, plural: str) -> Resource | None:
        """The resource with this name in a URL."""
        return self._by_plural.get((*group_version, plural))

    def versions_of(self, group: str) -> tuple[str, ...]:
        """The versions a group is served in, most preferred first."""
        served = dict.fromkeys(
            version
            for resource in self.resources
            if resource.group == group
            for version in resource.versions
        )
        return tuple(sorted(served, key=preference))

    def resources_in(self, group_version: GroupVersion) -> list[Resource]:
        """Everything served in one version of a group, by name."""
        found = [
            resource
            for resource in self.resources
            if resource.group == group_version.group and group_version.version in resource.versions
        ]
        return sorted(found, key=lambda resource: resource.plural)

    def short_names(self, resource: Resource, version: str) -> tuple[str, ...]:
        """The short names that discovery lists in a version."""
        return resource.short_names if resource.has_short_names(version, self._gates) else ()


BY_DEFAULT: Final = ServedResources(DEFAULTS)
"""What a server serves unless told otherwise."""
