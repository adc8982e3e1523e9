"""The table of everything that can be served: each kind with its definition.

Discovery, routes, OpenAPI, codecs and storage keys are derived from it. What one server serves of it is in
`allot.apiserver.registry.served`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, TypeVar

from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.kinds import KINDS, Kind
from allot.apiserver.defaults.filling import Step
from allot.apiserver.kinds.custom_versions import CustomVersion
from allot.apiserver.kinds.definition import KindDefinition, Subresource
from allot.apiserver.kinds.strategy import Strategy
from allot.apiserver.printers.column import Table
from allot.apiserver.schemas.tables import declare_kind
from allot.features import FeatureGates


@dataclass(frozen=True, eq=False)
class Resource:
    """A kind and how it is served. The first version is the preferred one.

    There is one of each, so they are compared by identity.
    """

    info: Kind = field(repr=False)
    """Its row in the table of kinds."""
    group: str
    kind: str
    plural: str
    versions: tuple[str, ...]
    namespaced: bool
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    stored_as: tuple[str, str] | None = field(repr=False)
    strategy: Strategy[Any] = field(repr=False)
    defaults: Step = field(repr=False)
    table: Table = field(repr=False)
    subresources: tuple[Subresource, ...] = field(repr=False)
    selectable_fields: Mapping[str, str] = field(repr=False)
    verbs: tuple[str, ...] = field(repr=False)
    is_created_by_update: bool = field(repr=False)
    returns_deleted_in: tuple[str, ...] = field(repr=False)
    cache_index: Callable[[bytes], Hashable] | None = field(repr=False)
    schema: str = field(repr=False)
    is_served: Callable[[FeatureGates], bool] = field(repr=False)
    serves_version: Callable[[str, FeatureGates], bool] = field(repr=False)
    has_short_names: Callable[[str, FeatureGates], bool] = field(repr=False)
    hidden_fields: Callable[[str, FeatureGates], Collection[str]] = field(repr=False)
    without_effect: str = field(repr=False)
    plain_tables: tuple[str, ...] = field(repr=False)
    custom: CustomVersion | None = field(repr=False, default=None)
    """What a CustomResourceDefinition says about the version; None for built-in kinds."""
    derived: dict[Any, Any] = field(repr=False, default_factory=dict)
    """What others make of it and keep with it."""

    @property
    def is_stored(self) -> bool:
        """Whether there are objects of it. Reviews are answered and forgotten, component statuses are probed."""
        return self.info.is_stored

    @cached_property
    def has_names(self) -> bool:
        """Whether a path can name an object of it."""
        return "get" in self.verbs

    @property
    def singular(self) -> str:
        return self.info.singular

    @property
    def qualified_name(self) -> str:
        """As error messages call it: `pods`, `resourceclaims.resource.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def gvk(self, version: str) -> GroupVersionKind:
        return _gvk(self.group, version, self.kind)

    def subresource(self, name: str) -> Subresource | None:
        for part in self.subresources:
            if part.name == name:
                return part
        return None


_gvk: Final = cache(GroupVersionKind)

T = TypeVar("T")


_caches: Final[list[Callable[[], None]]] = []


def per_resource(make: Callable[[Resource], T]) -> Callable[[Resource], T]:
    """Caches the results of a function with the resources they are about: they end with a custom resource.

    In front of them is a cache as fast as any, which `forget_resources` empties.
    """

    def found(resource: Resource) -> T:
        if make not in resource.derived:
            resource.derived[make] = make(resource)
        made: T = resource.derived[make]
        return made

    cached = cache(found)
    _caches.append(cached.cache_clear)
    return cached


def forget_resources() -> None:
    """Keep nothing of custom resources that are no longer served."""
    for clear in _caches:
        clear()


class ByResource(dict[Resource, T]):
    """What is made once of each resource, by one owner, such as one of several servers, with which it ends.

    What is made of a custom resource, which comes and goes, ends with that resource.
    """

    def __init__(self, make: Callable[[Resource], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, resource: Resource) -> T:
        if resource.custom is None:
            made = self[resource] = self._make(resource)
            return made
        if self._make not in resource.derived:
            resource.derived[self._make] = self._make(resource)
        kept: T = resource.derived[self._make]
        return kept


def resource_for(
    kind: Kind, definition: KindDefinition, custom: CustomVersion | None = None
) -> Resource:
    """The resource of a kind with this definition."""
    if not kind.is_typed and custom is None:
        for version in kind.versions:
            declare_kind(kind.group, version, kind.name, definition.schema)
    return Resource(
        kind,
        kind.group,
        kind.name,
        kind.plural,
        kind.versions,
        kind.namespaced,
        kind.short_names,
        kind.categories,
        kind.stored_as,
        definition.strategy(kind),
        *definition[1:],
        custom,
    )


_word_boundary: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def module_of(kind: Kind) -> str:
    """The module that is named after a kind: `csi_driver` for CSIDriver."""
    return f"{__package__}.{_word_boundary.sub('_', kind.name).lower()}"


def definition_of(kind: Kind) -> KindDefinition:
    """The `DEFINITION` in the kind's module; the default one if there is no such module.

    If kinds of several groups have the same name, the module has a `DEFINITION_BY_GROUP`, too.
    """
    name = module_of(kind)
    if find_spec(name) is None:
        return KindDefinition() if kind.is_stored else KindDefinition(verbs=("create",))
    module = import_module(name)
    by_group: Mapping[str, KindDefinition] = getattr(module, "DEFINITION_BY_GROUP", {})
    definition: KindDefinition = by_group.get(kind.group) or module.DEFINITION
    return definition


RESOURCES: Final = tuple(resource_for(kind, definition_of(kind)) for kind in KINDS)


_BY_PLURAL: Final = {
    (resource.group, version, resource.plural): resource
    for resource in RESOURCES
    for version in resource.versions
}
_BY_KIND: Final = {
    resource.gvk(version): resource for resource in RESOURCES for version in resource.versions
}


def find(group_version: GroupVersion, plural: str) -> Resource | None:
    """The resource with this name in a URL."""
    return _BY_PLURAL.get((*group_version, plural))


def find_kind(gvk: GroupVersionKind) -> Resource | None:
    return _BY_KIND.get(gvk)
