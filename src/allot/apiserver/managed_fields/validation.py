"""Validation of a document against a schema, as far as ownership needs it, with Kubernetes' messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from allot.apiserver.managed_fields.field_sets import element_text, field_element
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

Path = tuple[str, ...]
"""Path elements: they become text only if there is a problem."""


def fits(type_: ValueType, value: Any) -> bool:
    """Whether a document certainly has no `type_problems`: most have none."""
    if value is None:
        return True
    if value.__class__ is dict:
        part = type_.map
        if part is None:
            return False
        names = part.names[tuple(value)]
        return _entries_fit(part, value) if names is None else _named_fit(names, value)
    if value.__class__ is list:
        return type_.list is not None and _items_fit(type_.list, value)
    return bool(type_.scalar) and not _scalar_problem(type_.scalar, value)


def _named_fit(names: Names, value: dict[str, Any]) -> bool:
    for name, type_ in names.others:
        if not fits(type_, value[name]):
            return False
    for name in names.texts:
        item = value[name]
        if item.__class__ is not str and item is not None:
            return False
    return True


def _entries_fit(part: MapType, value: dict[str, Any]) -> bool:
    fields, element = part.fields, part.element
    for name, item in value.items():
        found = fields.get(name) or element
        if found is None:
            return False
        if not (item.__class__ is str and found.is_text) and not fits(found, item):
            return False
    return True


def _items_fit(part: ListType, value: list[Any]) -> bool:
    seen: set[str] = set()
    for item in value:
        if part.associative:
            try:
                element = part.path_element(item)
            except PathElementError:
                return False
            if element in seen:
                return False
            seen.add(element)
        if not fits(part.element, item):
            return False
    return True


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
