"""The fields of a value, and the differences between two values, as field sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from allot.apiserver.managed_fields.field_sets import (
    SELF,
    FieldSet,
    ordered,
    recursive_difference,
    union,
)
from allot.apiserver.managed_fields.value_types import (
    ListType,
    MapType,
    Names,
    Part,
    PathElementError,
    ValueType,
)

ABSENT: Final = object()
"""No value, as opposed to null."""
LEAF: Final[FieldSet] = {}


class Comparison(msgspec.Struct, frozen=True):
    """The fields added, modified and removed from one value to another."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def is_same(self) -> bool:
        return not (self.removed or self.modified or self.added)

    @property
    def changed(self) -> FieldSet:
        """The fields that are added or modified."""
        return union(self.modified, self.added) if self.modified else self.added

    def without(self, fields: FieldSet) -> Comparison:
        """The comparison without these fields and everything below them."""
        removed, modified, added = self.removed, self.modified, self.added
        if fields.keys().isdisjoint((*removed, *modified, *added)):
            return self
        return Comparison(
            recursive_difference(removed, fields) if removed else removed,
            recursive_difference(modified, fields) if modified else modified,
            recursive_difference(added, fields) if added else added,
        )


def same_value(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, but not true."""
    return bool(left == right) and _same_types(left, right)


def _same_types(left: Any, right: Any) -> bool:
    """Whether equal values are booleans at the same places."""
    if left is right:
        return True
    if isinstance(left, dict):
        return all(_same_types(item, right[name]) for name, item in left.items())
    if isinstance(left, list):
        return all(map(_same_types, left, right))
    return isinstance(left, bool) == isinstance(right, bool)


# --- one value ---


def field_set(type_: ValueType, value: Any) -> FieldSet:
    """The fields that an applied configuration owns: leaves, list items and map entries."""
    if value.__class__ is dict:
        part = type_.map
        if part is None or part.atomic:
            return LEAF
        names = part.names[tuple(value)]
        return _entries_set(part, value) if names is None else _named_set(names, value)
    if value.__class__ is list:
        items = type_.list
        return LEAF if items is None or not items.associative else _items_set(items, value)
    return LEAF


def _items_set(part: ListType, value: list[Any]) -> FieldSet:
    found: FieldSet = {}
    twice = set()
    for item in value:
        element = _element(part, item)
        if element is None:
            continue
        if element in found:
            twice.add(element)
        else:
            found[element] = claimed(field_set(part.element, item))
    for element in twice:
        found[element] = LEAF
    return ordered(found) if len(found) > 1 else found


def _named_set(names: Names, value: dict[str, Any]) -> FieldSet:
    if not names.with_parts:
        return names.fields
    found = dict(names.fields)
    for name, element, type_ in names.with_parts:
        item = value[name]
        below = field_set(type_, item)
        if below:
            found[element] = below
        elif not is_leaf(type_, item):
            del found[element]
    return found


def _entries_set(part: MapType, value: dict[str, Any]) -> FieldSet:
    found: FieldSet = {}
    fields, element = part.fields, part.element
    for name in sorted(value):
        type_ = fields.get(name) or element
        if type_ is None:
            continue
        if type_.only_scalar:
            found["f:" + name] = LEAF
            continue
        item = value[name]
        below = field_set(type_, item)
        if below:
            found["f:" + name] = below if name in fields else claimed(below)
        elif is_leaf(type_, item) or name not in fields:
            found["f:" + name] = LEAF
    return found


def is_leaf(type_: ValueType, value: Any) -> bool:
    """Whether a value without owned parts is itself owned; empty lists with keys are not."""
    part = type_.part_for(value)
    if isinstance(part, MapType):
        return part.atomic or not value
    return isinstance(part, str) or not part.associative or value is None


def claimed(below: FieldSet) -> FieldSet:
    return below if not below or SELF in below else {SELF: LEAF, **below}


def everything(type_: ValueType, value: Any) -> FieldSet:
    """The value and all its fields, in wire order: what is added where no value was."""
    if value.__class__ is dict:
        part = type_.map
        if part is None or part.atomic or not value:
            return LEAF
        names = part.names[tuple(value)]
        return _all_entries(part, value) if names is None else _all_named(names, value)
    if value.__class__ is list:
        if type_.list is None or not type_.list.associative or not value:
            return LEAF
        return _all_items(type_.list, value)
    return LEAF


def _all_named(names: Names, value: dict[str, Any]) -> FieldSet:
    if not names.with_parts:
        return names.everything
    found = dict(names.everything)
    for name, element, type_ in names.with_parts:
        found[element] = everything(type_, value[name])
    return found


def _all_entries(part: MapType, value: dict[str, Any]) -> FieldSet:
    found: FieldSet = {SELF: LEAF}
    fields, element = part.fields, part.element
    for name in sorted(value):
        below = fields.get(name) or element
        if below is not None:
            is_leaf = below.only_scalar or (item := value[name]) is None
            found["f:" + name] = LEAF if is_leaf else everything(below, item)
    return found


def _all_items(part: ListType, value: list[Any]) -> FieldSet:
    found: FieldSet = {SELF: LEAF}
    for item in value:
        element = _element(part, item)
        if element is not None:
            found[element] = LEAF if element in found else everything(part.element, item)
    return ordered(found) if len(found) > 2 else found


def all_new(
    types: Mapping[str, ValueType],
    empty: Mapping[str, Any],
    value: dict[str, Any],
    ignored: FieldSet,
) -> FieldSet:
    """The fields of a new object that an empty one does not have, in wire order, without ignored fields."""
    found: FieldSet = {}
    for name in sorted(value):
        type_ = types.get(name)
        node = ignored.get("f:" + name)
        if type_ is None or (node is not None and not node):
            continue
        item = value[name]
        if name not in empty:
            found["f:" + name] = everything(type_, item)
        elif isinstance(was := empty[name], dict) and isinstance(item, dict) and is_struct(type_):
            assert type_.map is not None
            fields = all_new(type_.map.fields, was, item, node or LEAF)
            if fields:
                found["f:" + name] = fields
        elif item != was:
            found["f:" + name] = _only_inner(type_, item)
    return found


def is_struct(type_: ValueType) -> bool:
    """Whether the type has named fields with separate owners."""
    return type_.map is not None and not type_.map.atomic and type_.map.element is None


def _only_inner(type_: ValueType, value: Any) -> FieldSet:
    """What is added where null was: the parts of the value, or the value itself if it has no parts."""
    found = everything(type_, value)
    if SELF not in found:
        return found
    return {element: below for element, below in found.items() if element != SELF}


def _element(part: ListType, item: Any) -> str | None:
    try:
        return part.path_element(item)
    except PathElementError:
        return None


# --- two values ---


Changes = tuple[FieldSet | None, FieldSet | None, FieldSet | None]
"""What is removed, modified and added at and below one path element; None if nothing is."""
_SAME: Final[Changes] = (None, None, None)


def compare(type_: ValueType, old: Any, new: Any) -> Comparison:
    """How `new` differs from `old`."""
    if type_.map is not None and not type_.map.atomic and old.__class__ is new.__class__ is dict:
        removed, modified, added = _compare_entries(type_.map, old, new)
    else:
        removed, modified, added = _compare(type_, old, new)
    return Comparison(removed or {}, modified or {}, added or {})


def _compare(type_: ValueType, old: Any, new: Any) -> Changes:
    if old is ABSENT:
        return None, None, everything(type_, new)
    if new is ABSENT:
        return everything(type_, old), None, None
    if same_value(old, new):
        return _SAME
    before, after = type_.part_for(old), type_.part_for(new)
    found = _compare_as(before, old, new)
    return found if after is before else _both(found, _compare_as(after, old, new))


def _compare_as(part: Part, old: Any, new: Any) -> Changes:
    """How two values that are not the same differ."""
    if isinstance(part, MapType):
        old_map = old if isinstance(old, dict) else {}
        new_map = new if isinstance(new, dict) else {}
        if not part.atomic and (old_map or new_map):
            return _compare_entries(part, old_map, new_map)
    elif isinstance(part, ListType):
        old_list = old if isinstance(old, list) else []
        new_list = new if isinstance(new, list) else []
        if part.associative and (old_list or new_list):
            return _compare_items(part, old_list, new_list)
    return None, LEAF, None


def _compare_entries(part: MapType, old: dict[str, Any], new: dict[str, Any]) -> Changes:
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    fields, element = part.fields, part.element
    for name, before in old.items():
        after = new.get(name, ABSENT)
        if after is before or (after == before and after.__class__ is str):
            continue  # most of an object stays as it is, and most of it is text
        type_ = fields.get(name) or element
        if type_ is None:
            continue
        if type_.only_scalar and after is not ABSENT:
            if not same_value(before, after):
                modified["f:" + name] = LEAF
            continue
        inner = type_.map
        if inner is None or inner.atomic or not (before.__class__ is after.__class__ is dict):
            changes = _compare(type_, before, after)
        elif same_value(before, after):
            continue
        else:
            changes = _compare_entries(inner, before, after)
        _put_all(changes, "f:" + name, removed, modified, added)
    for name, after in new.items():
        if name not in old and (type_ := fields.get(name) or element) is not None:
            added["f:" + name] = everything(type_, after)
    return (
        (ordered(removed) if len(removed) > 1 else removed) or None,
        (ordered(modified) if len(modified) > 1 else modified) or None,
        (ordered(added) if len(added) > 1 else added) or None,
    )


def _compare_items(part: ListType, old: list[Any], new: list[Any]) -> Changes:
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    before_by_element, after_by_element = _by_element(part, old), _by_element(part, new)
    for element in dict.fromkeys([*before_by_element, *after_by_element]):
        before = before_by_element.get(element, [])
        after = after_by_element.get(element, [])
        if len(before) <= 1 and len(after) <= 1:
            first, second = before[0] if before else ABSENT, after[0] if after else ABSENT
            changes = _compare(part.element, first, second)
        elif len(before) >= 2 and len(after) >= 2:
            # Duplicates are owned together, like an atomic value.
            changes = (None, LEAF, None) if before != after else _SAME
        elif len(before) >= 2:
            changes = LEAF, None, everything(part.element, after[0]) if after else None
        else:
            changes = everything(part.element, before[0]) if before else None, None, LEAF
        _put_all(changes, element, removed, modified, added)
    return (
        (ordered(removed) if len(removed) > 1 else removed) or None,
        (ordered(modified) if len(modified) > 1 else modified) or None,
        (ordered(added) if len(added) > 1 else added) or None,
    )


def _by_element(part: ListType, items: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        element = _element(part, item)
        if element is not None:
            found.setdefault(element, []).append(item)
    return found


def _put_all(
    changes: Changes, element: str, removed: FieldSet, modified: FieldSet, added: FieldSet
) -> None:
    """Adds what changed at one path element."""
    gone, other, come = changes
    if gone is not None:
        removed[element] = gone
    if other is not None:
        modified[element] = other
    if come is not None:
        added[element] = come


def _both(left: Changes, right: Changes) -> Changes:
    """Both of two findings about a value that is of one type before and of another after."""
    removed, modified, added = map(_either, left, right)
    return removed, modified, added


def _either(left: FieldSet | None, right: FieldSet | None) -> FieldSet | None:
    if left is None or right is None:
        return right if left is None else left
    found: FieldSet = union({"": left}, {"": right})[""]
    return found
