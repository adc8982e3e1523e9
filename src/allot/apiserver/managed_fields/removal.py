"""Values without the fields of a set."""

from __future__ import annotations

from typing import Any

from allot.apiserver.managed_fields.field_sets import SELF, FieldSet, is_member
from allot.apiserver.managed_fields.value_types import ANYTHING, ListType, MapType, ValueType


def remove_items(type_: ValueType, value: Any, fields: FieldSet) -> Any:
    """`value` without the members of `fields`; null where nothing is left."""
    part = type_.part_for(value)
    if isinstance(part, str):
        return value
    if isinstance(part, ListType):
        if not isinstance(value, list) or not part.associative:
            return None
        return _without_items(part, value, fields) or None
    if not isinstance(value, dict) or part.atomic:
        return None
    return _without_entries(part, value, fields) or None


def _without_items(part: ListType, value: list[Any], fields: FieldSet) -> list[Any]:
    kept = []
    for item in value:
        node = fields.get(part.path_element(item))
        if node is None:
            kept.append(item)
        elif not is_member(node):
            kept.append(remove_items(part.element, item, node))
    return kept


def _without_entries(part: MapType, value: dict[str, Any], fields: FieldSet) -> dict[str, Any]:
    kept = {}
    for name, item in value.items():
        node = fields.get(f"f:{name}")
        type_ = part.type_of(name)
        if node is None or type_ is None:
            kept[name] = item
        elif not is_member(node):
            kept[name] = remove_items(type_, item, node)
    return kept


def with_named_fields(type_: ValueType, fields: FieldSet) -> FieldSet:
    """`fields` with all named fields that lead to a member: `a.b` is then also `a`, unless `a` is a map key."""
    found: FieldSet = {}
    map_, list_ = type_.map, type_.list
    for element, node in fields.items():
        if element == SELF or not node:
            found[element] = node
            continue
        kind, _, name = element.partition(":")
        below = type_
        named = False
        if kind == "f" and map_ is not None:
            below = map_.type_of(name) or ANYTHING
            named = name in map_.fields
        elif kind == "k" and list_ is not None:
            below = list_.element
        inner = with_named_fields(below, node)
        found[element] = {SELF: {}, **inner} if named and SELF not in inner else inner
    return found
