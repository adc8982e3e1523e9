"""Empty lists and maps that Go does not write: for raw kinds they are the same as none.

Empty objects with named fields stay, such as `emptyDir: {}`, and so do lists that are required.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from allot.api.identities import GroupVersionKind
from allot.apiserver.schemas.fields import Field, Type
from allot.apiserver.schemas.types import reachable, type_named, type_of

MAX_NAME: Final = 80
"""Names of fields are shorter than this; longer words are values, which are not read to their end."""
_empty: Final = re.compile(rb"\[\s*+\]|\{\s*+\}")
_empty_values: Final = re.compile(rb'"(\w{1,%d}+)"\s*+:\s*+(?:\[\s*+\]|\{\s*+\})' % MAX_NAME)


def without_empty_values(
    data: dict[str, Any], body: bytes, gvk: GroupVersionKind
) -> dict[str, Any]:
    """The object in `body` without lists and maps that are empty; the same one if it has none."""
    schema = type_of(gvk)
    if schema is None or _empty.search(body) is None:
        return data
    omitted = _omitted_names(schema.name)
    if not any(found in omitted for found in _empty_values.findall(body)):
        return data
    return _cleaned(schema, data)


@cache
def _omitted_names(name: str) -> frozenset[bytes]:
    """The names of all fields that are not written when they are empty."""
    return frozenset(
        field_name.encode()
        for type_ in reachable([name]).values()
        for field_name, field in type_.fields.items()
        if _is_omitted(field)
    )


def _is_omitted(field: Field) -> bool:
    return bool(field.container) and not field.required


def _cleaned(schema: Type, data: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in data.items():
        field = schema.fields.get(name)
        if field is None or not isinstance(value, dict | list):
            kept[name] = value
        elif value or not _is_omitted(field):
            kept[name] = _cleaned_value(field, value)
    return kept


def _cleaned_value(field: Field, value: Any) -> Any:
    if not field.is_type:
        return value
    schema = type_named(field.type)
    if field.container == "list" and isinstance(value, list):
        return [_cleaned(schema, item) if isinstance(item, dict) else item for item in value]
    if field.container == "map" and isinstance(value, dict):
        return {
            name: _cleaned(schema, item) if isinstance(item, dict) else item
            for name, item in value.items()
        }
    return _cleaned(schema, value) if isinstance(value, dict) else value
