"""Validation of a document against a schema, as far as ownership needs it, with Kubernetes' messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from allot.apiserver.managed_fields.comparison import LEAF, claimed, is_leaf
from allot.apiserver.managed_fields.field_sets import (
    FieldSet,
    element_text,
    field_element,
    ordered,
)
from allot.apiserver.managed_fields.value_types import (
    BOOLEAN,
    NUMERIC,
    STRING,
    ListType,
    MapType,
    Names,
    PathElementError,
    ValueType,
)

_TEXTS: Final = frozenset((str, type(None)))
"""The types of values of text fields."""
Path = tuple[str, ...]
"""Path elements: they become text only if there is a problem."""


def fits(type_: ValueType, value: Any) -> bool:
    """Whether a document certainly has no `type_problems`: most have none."""
    return valid_fields(type_, value) is not None


def valid_fields(type_: ValueType, value: Any) -> FieldSet | None:
    """The `field_set` of a document, in the same pass; None unless it certainly has no `type_problems`."""
    if value is None:
        return LEAF
    if value.__class__ is dict:
        part = type_.map
        if part is None:
            return None
        names = part.names[tuple(value)]
        found = _entries_fields(part, value) if names is None else _named_fields(names, value)
        return LEAF if part.atomic and found is not None else found
    if value.__class__ is list:
        return None if type_.list is None else _items_fields(type_.list, value)
    return LEAF if type_.scalar and not _scalar_problem(type_.scalar, value) else None


def _named_fields(names: Names, value: dict[str, Any]) -> FieldSet | None:
    if not _TEXTS.issuperset(map(type, map(value.get, names.texts))):
        return None
    found = names.fields if not names.with_parts else dict(names.fields)
    for name, element, type_, has_parts in names.others:
        item = value[name]
        below = valid_fields(type_, item)
        if below is None:
            return None
        if not has_parts:
            continue
        if below:
            found[element] = below
        elif not is_leaf(type_, item):
            del found[element]
    return found


def _entries_fields(part: MapType, value: dict[str, Any]) -> FieldSet | None:
    found: FieldSet = {}
    fields, element = part.fields, part.element
    for name in sorted(value):
        type_ = fields.get(name) or element
        if type_ is None:
            return None
        item = value[name]
        if item.__class__ is str and type_.is_text:
            found["f:" + name] = LEAF
            continue
        below = valid_fields(type_, item)
        if below is None:
            return None
        if below:
            found["f:" + name] = below if name in fields else claimed(below)
        elif type_.only_scalar or is_leaf(type_, item) or name not in fields:
            found["f:" + name] = LEAF
    return found


def _items_fields(part: ListType, value: list[Any]) -> FieldSet | None:
    found: FieldSet = {}
    for item in value:
        below = valid_fields(part.element, item)
        if below is None:
            return None
        if not part.associative:
            continue
        try:
            element = part.path_element(item)
        except PathElementError:
            return None
        if element in found:
            return None
        found[element] = claimed(below)
    return ordered(found)


def type_problems(type_: ValueType, value: Any, path: Path = ()) -> Iterator[str]:
    """Type errors in a document, and duplicate keys in lists."""
    part = type_.part_for(value)
    if value is None:
        return
    if isinstance(part, str):
        problem = _scalar_problem(part, value)
        if problem:
            yield _at(path, problem)
    elif isinstance(part, ListType):
        if isinstance(value, list):
            yield from _list_problems(part, value, path)
        else:
            yield _at(path, f"expected list, got &{{{go_text(value)}}}")
    elif isinstance(value, dict):
        yield from _map_problems(part, value, path)
    else:
        yield _at(path, f"expected map, got &{{{go_text(value)}}}")


def _list_problems(part: ListType, value: list[Any], path: Path) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if part.associative:
            try:
                element = part.path_element(item)
            except PathElementError as error:
                yield _at(path, f"element {index}: {error}")
                return
            if element in seen:
                yield _at(path, f"duplicate entries for key {element_text(element)}")
            seen.add(element)
        yield from type_problems(part.element, item, (*path, element))


def _map_problems(part: MapType, value: dict[str, Any], path: Path) -> Iterator[str]:
    fields, element = part.fields, part.element
    for name, item in value.items():
        found = fields.get(name) or element
        if found is None:
            yield _at((*path, field_element(name)), "field not declared in schema")
            return
        if item.__class__ is str and found.is_text:
            continue  # most values
        yield from type_problems(found, item, (*path, field_element(name)))


def _scalar_problem(part: str, value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if part == STRING and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"
    if part == NUMERIC and not is_number:
        return f"expected numeric (int or float), got {_go_type(value)}"
    if part == BOOLEAN and not isinstance(value, bool):
        return f"expected boolean, got &{{{go_text(value)}}}"
    if isinstance(value, dict | list):
        return f"expected any scalar, got &{{{go_text(value)}}}"
    return ""


def _at(path: Path, problem: str) -> str:
    return f"{''.join(map(element_text, path))}: {problem}" if path else problem


# --- values as Go prints them ---


def go_text(value: Any) -> str:
    """A JSON value as `%v` prints it."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case dict():
            entries = (f"{name}:{go_text(value[name])}" for name in sorted(value))
            return f"map[{' '.join(entries)}]"
        case list():
            return f"[{' '.join(go_text(item) for item in value)}]"
        case _:
            return str(value)


def go_syntax(value: Any) -> str:
    """A JSON value as `%#v` prints it."""
    match value:
        case None:
            return "interface {}(nil)"
        case bool():
            return "true" if value else "false"
        case str():
            return msgspec.json.encode(value).decode()
        case dict():
            entries = (f"{go_syntax(name)}:{go_syntax(value[name])}" for name in sorted(value))
            return f"map[string]interface {{}}{{{', '.join(entries)}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(go_syntax(item) for item in value)}}}"
        case _:
            return str(value)


def _go_type(value: Any) -> str:
    match value:
        case str():
            return "string"
        case bool():
            return "bool"
        case dict():
            return "map[string]interface {}"
        case _:
            return "[]interface {}"
