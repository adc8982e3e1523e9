"""The type of every kind that is served, and of all that is inside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from allot.api.identities import GroupVersionKind
from allot.apiserver.schemas import structs, tables
from allot.apiserver.schemas.fields import Field, Type
from allot.apiserver.schemas.tables import META

__all__ = ["META_KINDS", "Field", "Type", "reachable", "type_named", "type_of"]

META_KINDS: Final = frozenset({"APIResourceList", "DeleteOptions", "Status", "WatchEvent"})
"""Kinds that are the same in every group and version."""


def type_named(name: str) -> Type:
    """The type with this OpenAPI name; KeyError if it does not exist."""
    package, _, short = name.rpartition(".")
    try:
        return _types_in(package)[short]
    except KeyError:
        raise KeyError(name) from None


def type_of(gvk: GroupVersionKind) -> Type | None:
    """The schema of a kind in a version."""
    if gvk in _found:
        return _found[gvk]
    found = _find_type(gvk)
    if found is not None:  # kinds may be declared later
        _found[gvk] = found
    return found


_found: Final[dict[GroupVersionKind, Type]] = {}


def _find_type(gvk: GroupVersionKind) -> Type | None:
    if gvk.kind in META_KINDS:
        return tables.types_in(META)[gvk.kind]
    found = _types_in(tables.package_of(gvk.group, gvk.version)).get(gvk.kind)
    return found if found is not None and gvk in found.kinds else None


def reachable(names: Iterable[str]) -> dict[str, Type]:
    """The named types and all that are inside them."""
    found: dict[str, Type] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = type_named(name)
            waiting += [field.type for field in found[name].fields.values() if field.is_type]
    return found


def _types_in(package: str) -> dict[str, Type]:
    if package.startswith(f"{structs.PACKAGE}."):
        return structs.types_in(package.rpartition(".")[2])
    return tables.types_in(package)
