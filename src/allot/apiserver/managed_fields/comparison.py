"""The fields of a value, and the differences between two values, as field sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from allot.apiserver.managed_fields.field_sets import (
    SELF,
    FieldSet,
    is_member,
    recursive_difference,
    sorted_elements,
    union,
)
from allot.apiserver.managed_fields.value_types import (
    ListType,
    MapType,
    Part,
    PathElementError,
    ValueType,
)

ABSENT: Final = object()
"""No value, as opposed to null."""
_LEAF: Final[FieldSet] = {}


class Comparison(NamedTuple):
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
        return union(self.modified, self.added)

    def without(self, fields: FieldSet) -> Comparison:
        """The comparison without these fields and everything below them."""
        if not fields:
            return self
        return Comparison(*[recursive_difference(part, fields) if part else part for part in self])


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
    part = type_.part_for(value)
    if isinstance(part, str):
        return _LEAF
    if isinstance(part, ListType):
        return _items_set(part, value)
    return _LEAF if part.atomic else _entries_set(part, value)


def _items_set(part: ListType, value: Any) -> FieldSet:
    found: FieldSet = {}
    if not part.associative or not isinstance(value, list):
        return found
    twice = set()
    for item in value:
        element = _element(part, item)
        if element is None:
            continue
        if element in found:
            twice.add(element)
        else:
            found[element] = _claimed(field_set(part.element, item))
    for element in twice:
        found[element] = _LEAF
    return found


def _entries_set(part: MapType, value: Any) -> FieldSet:
    found: FieldSet = {}
    if not isinstance(value, dict):
        return found
    fields, element = part.fields, part.element
    for name, item in value.items():
        type_ = fields.get(name) or element
        if type_ is None:
            continue
        if type_.only_scalar:
            found[f"f:{name}"] = _LEAF
            continue
        below = field_set(type_, item)
        if below:
            found[f"f:{name}"] = below if name in fields else _claimed(below)
        elif _is_leaf(type_, item) or name not in fields:
            found[f"f:{name}"] = _LEAF
    return found


def _is_leaf(type_: ValueType, value: Any) -> bool:
    """Whether a value without owned parts is itself owned; empty lists with keys are not."""
    part = type_.part_for(value)
    if isinstance(part, MapType):
        return part.atomic or not value
    return isinstance(part, str) or not part.associative or value is None


def _claimed(below: FieldSet) -> FieldSet:
    return below if is_member(below) else {SELF: _LEAF, **below}


def everything(type_: ValueType, value: Any) -> FieldSet:
    """The value and all its fields, in wire order: what is added where no value was."""
    part = type_.part_for(value)
    if isinstance(part, MapType):
        if part.atomic or not isinstance(value, dict) or not value:
            return _LEAF
        return {SELF: _LEAF, **_all_entries(part, value)}
    if isinstance(part, str) or not part.associative or not isinstance(value, list) or not value:
        return _LEAF
    return {SELF: _LEAF, **_all_items(part, value)}


def _all_entries(part: MapType, value: dict[str, Any]) -> FieldSet:
    found: FieldSet = {}
    fields, element = part.fields, part.element
    for name in sorted(value):
        below = fields.get(name) or element
        if below is not None:
            item = value[name]
            is_leaf = below.only_scalar or item is None
            found["f:" + name] = _LEAF if is_leaf else everything(below, item)
    return found


def _all_items(part: ListType, value: list[Any]) -> FieldSet:
    found: FieldSet = {}
    for item in value:
        element = _element(part, item)
        if element is not None:
            found[element] = _LEAF if element in found else everything(part.element, item)
    if len(found) < 2:
        return found
    return {element: found[element] for element in sorted_elements(found)}


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
            fields = all_new(type_.map.fields, was, item, node or _LEAF)
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


def compare(type_: ValueType, old: Any, new: Any) -> Comparison:
    """How `new` differs from `old`."""
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    _compare(type_, old, new, _Place(removed, modified, added, ""))
    return Comparison(removed.get("", {}), modified.get("", {}), added.get("", {}))


class _Place(NamedTuple):
    """The destination of the results for one path element."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet
    element: str


def _compare(type_: ValueType, old: Any, new: Any, place: _Place) -> None:
    if old is ABSENT:
        _put(place.added, place.element, everything(type_, new))
    elif new is ABSENT:
        _put(place.removed, place.element, everything(type_, old))
    elif not same_value(old, new):
        before, after = type_.part_for(old), type_.part_for(new)
        _compare_as(before, old, new, place)
        if after is not before:
            _compare_as(after, old, new, place)


def _compare_as(part: Part, old: Any, new: Any, place: _Place) -> None:
    if isinstance(part, MapType):
        old_map = old if isinstance(old, dict) else {}
        new_map = new if isinstance(new, dict) else {}
        if not part.atomic and (old_map or new_map):
            _compare_entries(part, old_map, new_map, place)
            return
    elif isinstance(part, ListType):
        old_list = old if isinstance(old, list) else []
        new_list = new if isinstance(new, list) else []
        if part.associative and (old_list or new_list):
            _compare_items(part, old_list, new_list, place)
            return
    if not same_value(old, new):
        _put(place.modified, place.element, _LEAF)


def _compare_entries(
    part: MapType, old: dict[str, Any], new: dict[str, Any], place: _Place
) -> None:
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
                modified[f"f:{name}"] = _LEAF
            continue
        below = _Place(removed, modified, added, f"f:{name}")
        inner = type_.map
        if inner is None or inner.atomic or not (before.__class__ is after.__class__ is dict):
            _compare(type_, before, after, below)
        elif not same_value(before, after):
            _compare_entries(inner, before, after, below)
    for name, after in new.items():
        if name not in old and (type_ := fields.get(name) or element) is not None:
            added[f"f:{name}"] = everything(type_, after)
    _put_all(place, removed, modified, added)


def _compare_items(part: ListType, old: list[Any], new: list[Any], place: _Place) -> None:
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    before_by_element, after_by_element = _by_element(part, old), _by_element(part, new)
    for element in dict.fromkeys([*before_by_element, *after_by_element]):
        before = before_by_element.get(element, [])
        after = after_by_element.get(element, [])
        below = _Place(removed, modified, added, element)
        if len(before) <= 1 and len(after) <= 1:
            first = before[0] if before else ABSENT
            _compare(part.element, first, after[0] if after else ABSENT, below)
        elif len(before) >= 2 and len(after) >= 2:
            # Duplicates are owned together, like an atomic value.
            if before != after:
                _put(modified, element, _LEAF)
        elif len(before) >= 2:
            if after:
                _compare(part.element, ABSENT, after[0], below)
            _put(removed, element, _LEAF)
        else:
            if before:
                _compare(part.element, before[0], ABSENT, below)
            _put(added, element, _LEAF)
    _put_all(place, removed, modified, added)


def _by_element(part: ListType, items: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        element = _element(part, item)
        if element is not None:
            found.setdefault(element, []).append(item)
    return found


def _put_all(place: _Place, removed: FieldSet, modified: FieldSet, added: FieldSet) -> None:
    if removed:
        _put(place.removed, place.element, removed)
    if modified:
        _put(place.modified, place.element, modified)
    if added:
        _put(place.added, place.element, added)


def _put(into: FieldSet, element: str, below: FieldSet) -> None:
    other = into.get(element)
    into[element] = below if other is None else union({element: other}, {element: below})[element]
