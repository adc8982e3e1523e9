"""Value types of a schema, and which parts of a value can have separate owners.

A value is a scalar, a list, a map, or one of several (free-form JSON). Lists are atomic, or have items
identified by keys or by value; maps are atomic or owned key by key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from allot.api.lazy import lazy
from allot.apiserver.managed_fields.field_sets import (
    SELF,
    FieldSet,
    field_element,
    is_plain,
    key_element,
    text_value_element,
    value_element,
)

STRING: Final = "string"
NUMERIC: Final = "numeric"
BOOLEAN: Final = "boolean"
ANY_SCALAR: Final = "untyped"
MAX_KNOWN_NAMES: Final = 64
"""Sets of names of fields that are remembered for one type."""
MAX_KNOWN_TEXT: Final = 256
"""Path elements of longer strings are not remembered."""


class PathElementError(ValueError):
    """A list item that has no path element."""


class ListType:
    """Lists: atomic, sets, or items with keys."""

    __slots__ = ("_before_text", "_only_key", "associative", "defaults", "element", "keys")

    def __init__(
        self,
        element: ValueType,
        *,
        associative: bool = False,
        keys: tuple[str, ...] = (),
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.element = element
        self.associative = associative
        self.keys = tuple(sorted(keys))
        self._only_key = self.keys[0] if len(self.keys) == 1 else None
        only_key = self._only_key
        self._before_text = "" if only_key is None else key_element({only_key: ""})[:-2]
        """The beginning of the path element of an item whose only key is a string."""
        self.defaults = defaults or {}
        """The default of a key that an item does not set."""

    def path_element(self, item: Any) -> str:
        """The path element of an item; `PathElementError` if it cannot be identified."""
        if not self.keys:
            return _set_element(item)
        key = self._only_key
        if key is not None and item.__class__ is dict:
            value = item.get(key)
            if value.__class__ is str and is_plain(value):
                return f'{self._before_text}{value}"}}'
        if item is None:
            raise PathElementError("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise PathElementError("associative list with keys may not have non-map elements")
        found = {}
        for key in self.keys:
            if key in item:
                found[key] = item[key]
            elif key in self.defaults:
                found[key] = self.defaults[key]
        return key_element(found)


def _set_element(item: Any) -> str:
    if item.__class__ is str and len(item) <= MAX_KNOWN_TEXT:
        return text_value_element(item)
    if isinstance(item, dict):
        raise PathElementError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise PathElementError("not supported: associative list with lists as elements")
    if item is None:
        raise PathElementError(
            "associative list without keys has an element that's an explicit null"
        )
    return value_element(item)


class Names(NamedTuple):
    """What the names in an object, all of them in the schema, say about its fields without their values."""

    fields: FieldSet
    """All of them as leaves, in wire order."""
    everything: FieldSet
    """The same, and the object itself."""
    texts: tuple[str, ...]
    """The fields that are strings."""
    others: tuple[tuple[str, str, ValueType, bool], ...]
    """The fields that are not: name, path element, type, and whether parts may have separate owners."""
    with_parts: tuple[tuple[str, str, ValueType], ...]
    """The fields that may have parts with separate owners: name, path element and type."""


class MapType:
    """Objects: named fields, or any keys with values of one type, or both."""

    def __init__(
        self,
        fields: Callable[[], Mapping[str, ValueType]] | None = None,
        element: ValueType | None = None,
        *,
        atomic: bool = False,
    ) -> None:
        self.element = element
        self.atomic = atomic
        self._make_fields = fields
        self.names = KnownNames(self)
        """What the names in an object say about its fields."""

    @lazy
    def fields(self) -> Mapping[str, ValueType]:
        """The named fields. Created on first use, because types may be recursive."""
        return self._make_fields() if self._make_fields is not None else {}

    def type_of(self, name: str) -> ValueType | None:
        """The type of a field or key; None if it is not in the schema: such a field has no owner."""
        return self.fields.get(name) or self.element


class KnownNames(dict[tuple[str, ...], "Names | None"]):
    """What names in objects of one type say about their fields; None for others than those in the schema.

    What is looked up is remembered.
    """

    def __init__(self, part: MapType) -> None:
        super().__init__()
        self._part = part

    def __missing__(self, names: tuple[str, ...]) -> Names | None:
        part = self._part
        if part.element is not None or not part.fields.keys() >= set(names):
            return None
        if len(self) >= MAX_KNOWN_NAMES:
            self.clear()
        found = self[names] = _names(part.fields, names)
        return found


def _names(fields_of_type: Mapping[str, ValueType], names: tuple[str, ...]) -> Names:
    types = {name: fields_of_type[name] for name in names}
    fields: FieldSet = {field_element(name): {} for name in sorted(names)}
    texts = tuple(name for name in names if types[name].is_text)
    return Names(
        fields,
        {SELF: {}, **fields},
        texts,
        tuple(
            (name, field_element(name), type_, not type_.has_one_owner)
            for name, type_ in types.items()
            if name not in texts
        ),
        tuple(
            (name, field_element(name), type_)
            for name, type_ in types.items()
            if not type_.has_one_owner
        ),
    )


Part = str | ListType | MapType


class ValueType:
    """The values that are allowed for one field."""

    __slots__ = ("is_text", "list", "map", "only_scalar", "scalar")

    def __init__(
        self, scalar: str = "", list_: ListType | None = None, map_: MapType | None = None
    ) -> None:
        self.scalar = scalar
        self.list = list_
        self.map = map_
        self.only_scalar = list_ is None and map_ is None
        self.is_text = self.only_scalar and scalar == STRING
        """Whether every value is a string."""

    @property
    def has_one_owner(self) -> bool:
        """Whether every value has the same owners as all of its parts."""
        return (self.list is None or not self.list.associative) and (
            self.map is None or self.map.atomic
        )

    def part_for(self, value: Any) -> Part:
        """The alternative that fits the value; otherwise the one for the error message."""
        if isinstance(value, dict):
            if self.map is not None:
                return self.map
        elif isinstance(value, list):
            if self.list is not None:
                return self.list
        elif value is not None and self.scalar:
            return self.scalar
        found = self.map or self.scalar or self.list
        assert found
        return found


def _anything() -> ValueType:
    """Free-form JSON: maps are owned key by key, lists as a whole."""
    made = ValueType(ANY_SCALAR)
    made.list = ListType(made)
    made.map = MapType(element=made)
    made.only_scalar = False
    return made


ANYTHING: Final = _anything()
