"""What one server serves: the table of `resources` as far as the feature gates allow, and custom resources.

A resource whose gate is off is not there: not in URLs, discovery and OpenAPI. What is stored of it stays, and is back
when the gate is on again. Custom resources are added and removed while the server runs, here and nowhere else;
whatever is derived from all resources is kept in `derived` and made again after a change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, TypeVar

from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.versions import version_order
from allot.apiserver.kinds.resources import RESOURCES, Resource
from allot.features import DEFAULTS, FeatureGates

T = TypeVar("T")
Place = tuple[str, str, str]
"""Where a resource is served: group, version and plural name."""


class ServedResources:
    """The resources of one server, by group, version and name."""

    def __init__(self, gates: FeatureGates, resources: Iterable[Resource] = RESOURCES) -> None:
        self._gates = gates
        self._built_in: Final = tuple(
            resource for resource in resources if resource.is_served(gates)
        )
        self._custom: dict[str, tuple[Resource, ...]] = {}
        self._listeners: list[Callable[[], None]] = []
        self._derived: dict[Hashable, Any] = {}
        self.resources: tuple[Resource, ...] = ()
        self._built_in_places: Final = self.places(self._built_in)
        self._custom_places: dict[Place, Resource] = {}
        self._update()

    def places(self, resources: Iterable[Resource]) -> dict[Place, Resource]:
        """Resources by where they are served. A definition may have ten thousand versions: not on the event loop."""
        return {
            (resource.group, version, resource.plural): resource
            for resource in resources
            for version in self.versions(resource)
        }

    def _update(self) -> None:
        custom = [resource for several in self._custom.values() for resource in several]
        self.resources = (*self._built_in, *custom)
        # A new one: what is being derived from the old resources is not taken for the new ones.
        self._derived = {}
        for listener in self._listeners:
            listener()

    # --- custom resources ---

    def add_custom(self, name: str, places: Mapping[Place, Resource]) -> None:
        """Serve the resources of a definition, in place of those it had."""
        self._forget(self._custom.get(name, ()))
        self._custom[name] = tuple(places.values())
        self._custom_places.update(places)
        self._update()

    def remove_custom(self, name: str) -> None:
        resources = self._custom.pop(name, None)
        if resources is not None:
            self._forget(resources)
            self._update()

    def _forget(self, resources: Iterable[Resource]) -> None:
        for resource in resources:
            for version in resource.versions:
                self._custom_places.pop((resource.group, version, resource.plural), None)

    def custom(self, name: str) -> tuple[Resource, ...]:
        """The resources of a definition that are served."""
        return self._custom.get(name, ())

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change."""
        self._listeners.append(listener)

    def derived(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` makes of the resources, until they change."""
        known = self._derived
        if key not in known:
            known[key] = make()
        found: T = known[key]
        return found

    # --- lookups ---

    @property
    def groups(self) -> tuple[str, ...]:
        """In the order in which discovery lists them."""
        return self.derived(
            "groups", lambda: tuple(dict.fromkeys(each.group for each in self.resources))
        )

    def versions(self, resource: Resource) -> tuple[str, ...]:
        """The versions a resource is served in, preferred first."""
        return tuple(
            version
            for version in resource.versions
            if resource.serves_version(version, self._gates)
        )

    def find(self, group_version: GroupVersion, plural: str) -> Resource | None:
        """The resource with this name in a URL."""
        place = (*group_version, plural)
        # No definition takes the place of a built-in resource.
        return self._built_in_places.get(place) or self._custom_places.get(place)

    def find_kind(self, gvk: GroupVersionKind) -> Resource | None:
        """The resource of a kind in a version."""
        return self.derived("kinds", self._by_kind).get(gvk)

    def _by_kind(self) -> dict[GroupVersionKind, Resource]:
        found: dict[GroupVersionKind, Resource] = {}
        for resource in self.resources:
            for version in self.versions(resource):
                found.setdefault(GroupVersionKind(resource.group, version, resource.kind), resource)
        return found

    def versions_of(self, group: str) -> tuple[str, ...]:
        """The versions a group is served in, most preferred first."""
        return self.derived("versions", self._versions_by_group).get(group, ())

    def _versions_by_group(self) -> dict[str, tuple[str, ...]]:
        served: dict[str, dict[str, None]] = {}
        for group, version in self.derived("group versions", self._by_group_version):
            served.setdefault(group, {})[version] = None
        return {
            group: tuple(sorted(versions, key=version_order)) for group, versions in served.items()
        }

    def resources_in(self, group_version: GroupVersion) -> list[Resource]:
        """Everything served in one version of a group, by name."""
        return list(self.derived("group versions", self._by_group_version).get(group_version, ()))

    def _by_group_version(self) -> dict[GroupVersion, list[Resource]]:
        """A definition may have thousands of versions: all are found in one pass."""
        found: dict[GroupVersion, list[Resource]] = {}
        for resource in sorted(self.resources, key=lambda resource: resource.plural):
            for version in self.versions(resource):
                found.setdefault(GroupVersion(resource.group, version), []).append(resource)
        return found

    def hidden_fields(self, group_version: GroupVersion) -> frozenset[str]:
        """Fields of types in a version that OpenAPI does not show, as `Type.field`."""
        return frozenset(
            field
            for resource in self.resources_in(group_version)
            for field in resource.hidden_fields(group_version.version, self._gates)
        )

    def short_names(self, resource: Resource, version: str) -> tuple[str, ...]:
        """The short names that discovery lists in a version."""
        return resource.short_names if resource.has_short_names(version, self._gates) else ()


BY_DEFAULT: Final = ServedResources(DEFAULTS)
"""What a server serves unless told otherwise."""
