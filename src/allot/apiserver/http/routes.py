"""Routes: the resource, object or subresource of a path."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

import msgspec

from allot.api.base import replace
from allot.api.identities import GroupVersion
from allot.apiserver.kinds.definition import Subresource
from allot.apiserver.kinds.resources import Resource, per_resource
from allot.apiserver.registry.served import ServedResources

MAX_REMEMBERED_PATHS: Final = 4096
MAX_REMEMBERED_PATH: Final = 256
"""How many paths of collections are remembered, and how long they may be."""


class Target(msgspec.Struct, frozen=True):
    """What a request is about. Without a name it is the whole collection."""

    resource: Resource
    version: str
    namespace: str = ""
    name: str = ""
    subresource: Subresource | None = None


def find_target(path: str, served: ServedResources) -> Target | None:
    """The target of an API path; None if nothing is served there."""
    parts = path.strip("/").split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    match parts:
        case ["api", version, *rest]:
            group_version = GroupVersion("", version)
        case ["apis", group, version, *rest] if group:
            group_version = GroupVersion(group, version)
        case _:
            return None
    named = rest[: rest.index(PROXY)] if PROXY in rest else rest
    if not all(named):
        return None
    return _find(group_version, rest, served)


class Router:
    """Finds targets. The path of a collection is read once: most requests are about few of them."""

    def __init__(self, served: ServedResources) -> None:
        self._served = served
        self._collections: dict[str, Target] = {}
        self._named: dict[str, Target] = {}
        """Those of them with objects that paths can name."""
        served.listen(self._forget)

    def find(self, path: str) -> Target | None:
        """The target of an API path; None if nothing is served there."""
        if path in self._collections:
            return self._collections[path]
        place, _, name = path.rpartition("/")
        target = self._find_object(place, name)
        if target is not None:
            return target
        target = find_target(path, self._served)
        if target is not None and target.subresource is None:
            if not target.name:
                self._remember(path, target)
            elif target.name == name:  # neither escaped nor followed by a slash
                self._remember(place, target)
        return target

    def _find_object(self, place: str, name: str) -> Target | None:
        """An object in a collection that is remembered, or a subresource of one."""
        if not name or "%" in name:
            return None
        if place in self._named:
            found = self._named[place]
            return Target(found.resource, found.version, found.namespace, name)
        collection, _, owner = place.rpartition("/")
        if collection in self._named and owner and "%" not in owner:
            found = self._named[collection]
            part = _subresources(found.resource).get(name)
            if part is not None:
                return Target(found.resource, found.version, found.namespace, owner, part)
        return None

    def _remember(self, path: str, target: Target) -> None:
        if len(path) > MAX_REMEMBERED_PATH or path.endswith("/"):
            return
        if len(self._collections) >= MAX_REMEMBERED_PATHS:  # they name namespaces, existing or not
            self._forget()
        collection = self._collections[path] = replace(target, name="")
        resource = target.resource
        if resource.has_names and (target.namespace or not resource.namespaced):
            self._named[path] = collection

    def _forget(self) -> None:
        self._collections.clear()
        self._named.clear()


@per_resource
def _subresources(resource: Resource) -> dict[str, Subresource]:
    return {part.name: part for part in reversed(resource.subresources)}


def _find(group_version: GroupVersion, rest: list[str], served: ServedResources) -> Target | None:
    version = group_version.version
    match rest:
        # Paths of namespaces themselves come before those of what they contain.
        case ["namespaces", name, part] if group_version == CORE and part in _NAMESPACE_PARTS:
            resource = served.find(group_version, "namespaces")
            namespace, names = "", [name, part]
        case ["namespaces", namespace, plural, *names]:
            resource = served.find(group_version, plural)
            if resource is not None and not resource.namespaced:
                return None
        case [plural, *names]:
            resource = served.find(group_version, plural)
            namespace = ""
            is_listed = resource is not None and "list" in resource.verbs
            if resource is not None and resource.namespaced and (names or not is_listed):
                return None
        case _:
            return None
    if resource is None:
        return None
    match names:
        case []:
            return Target(resource, version, namespace)
        case [name] if resource.has_names:
            return Target(resource, version, namespace, name)
        case [name, part] | [name, "proxy" as part, *_]:
            subresource = resource.subresource(part)
            if subresource is not None:
                return Target(resource, version, namespace, name, subresource)
    return None


PROXY: Final = "proxy"
"""The subresource that is followed by any path."""
CORE: Final = GroupVersion("", "v1")
_NAMESPACE_PARTS: Final = ("finalize", "status")


USUAL_VERBS: Final = {
    "GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete",
}  # fmt: skip
"""The verbs of methods, for messages."""


def verb_of(method: str, target: Target, *, watch: bool) -> str | None:
    """The verb of a request, as authorizers and metrics call it; None if the method is not allowed."""
    whole = not target.name
    match method:
        case "GET" | "HEAD":
            verb = "watch" if watch else "list" if whole else "get"
        case "POST":
            verb = "create"
        case "PUT":
            verb = "update"
        case "PATCH":
            verb = "patch"
        case "DELETE":
            verb = "deletecollection" if whole else "delete"
        case _:
            return None
    if target.subresource is not None:
        return verb if verb in target.subresource.verbs else None
    if verb not in target.resource.verbs:
        return None
    needs_name = verb in ("get", "update", "patch", "delete")
    if (whole and needs_name) or (not whole and verb == "create"):
        return None
    everywhere = target.resource.namespaced and not target.namespace
    if everywhere and verb in ("create", "deletecollection"):
        return None
    return verb
