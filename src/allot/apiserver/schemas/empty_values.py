"""Values that Go does not write, because they are zero: for raw kinds they are the same as none.

These are empty lists and maps, empty strings, 0 and false in fields that are neither pointers nor always written. The tables
of protobuf messages know both. Empty objects with named fields stay, such as `emptyDir: {}`, and so does `replicas: 0`,
which is behind a pointer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from allot.api.identities import GroupVersionKind
from allot.api.protobuf import schema as protobuf
from allot.apiserver.schemas.fields import Field, Type
from allot.apiserver.schemas.types import reachable, type_named, type_of

MAX_NAME: Final = 80
"""Names of fields are shorter than this; longer words are values, which are not read to their end."""
_empty_values: Final = re.compile(
    rb'"(\w{1,%d}+)"\s*+:\s*+(?:""|false|-?0(?![0-9.eE])|\[\s*+\]|\{\s*+\})' % MAX_NAME
)
_some_empty_value: Final = re.compile(rb':\s*+(?:""|false|-?0(?![0-9.eE])|\[\s*+\]|\{\s*+\})')
"""The end of each of them: most documents have none, which is known sooner without their names."""
_SCALARS: Final = frozenset({"string", "bytes", "bool", "int32", "int64", "double"})
_CORE: Final = "io.k8s.api.core.v1"
_KEPT: Final[Mapping[str, frozenset[str]]] = {
    f"{_CORE}.EphemeralContainer": frozenset({"ports", "resources", "resizePolicy", "restartPolicyRules"}),
    f"{_CORE}.PodSpec": frozenset({"overhead"}),
}  # fmt: skip
"""Fields that are refused if they are set, also to an empty list. What is in them stays as it is."""
_KEPT_INSIDE: Final = {f"{_CORE}.PodSpec": ("resources", "claims")}
"""The same for fields of one field, whose type is that of others, too."""


def without_empty_values(
    data: dict[str, Any], body: bytes, gvk: GroupVersionKind
) -> dict[str, Any]:
    """The object in `body` without values that are empty; the same one if it has none."""
    schema = type_of(gvk)
    if schema is None:
        return data
    if _some_empty_value.search(body) is None:
        return data
    omitted = _omitted_names(schema.name)
    if omitted.isdisjoint(_empty_values.findall(body)):
        return data
    return _cleaned(schema, data)


def may_have_empty_values(body: bytes) -> bool:
    """Whether any field in JSON is empty, also one that is written nevertheless."""
    return _some_empty_value.search(body) is not None


@cache
def _omitted_names(name: str) -> frozenset[bytes]:
    """The names of all fields that are not written when they are empty."""
    return frozenset(
        field_name.encode()
        for type_ in reachable([name]).values()
        for field_name in _omitted_fields(type_.name)
    )


@cache
def _omitted_fields(name: str) -> frozenset[str]:
    """The fields of a type that are not written when they are empty."""
    package, short = name.rsplit(".", 1)
    messages = protobuf.messages_in(".".join(package.split(".")[-2:]))
    if short not in messages:
        fields = type_named(name).fields.items()
        return frozenset(each for each, field in fields if field.container and not field.required)
    return frozenset(_omitted_in(messages[short]))


def _omitted_in(message: protobuf.Message) -> set[str]:
    found: set[str] = set()
    for field in message.fields:
        if not field.name:
            found |= _omitted_in(protobuf.message(field.type))
        elif field.omitted and (field.container or (field.type in _SCALARS and not field.pointer)):
            found.add(field.name)
    return found


def _cleaned(schema: Type, data: Mapping[str, Any]) -> dict[str, Any]:
    omitted = _omitted_fields(schema.name)
    kept_fields = _KEPT.get(schema.name, frozenset())
    kept: dict[str, Any] = {}
    for name, value in data.items():
        if name in kept_fields:
            kept[name] = value
        elif not value:
            if value is None or name not in omitted:
                kept[name] = value
        elif isinstance(value, dict | list) and (field := schema.fields.get(name)) is not None:
            kept[name] = _cleaned_value(field, value)
        else:
            kept[name] = value
    if schema.name in _KEPT_INSIDE:
        outer, inner = _KEPT_INSIDE[schema.name]
        found = data.get(outer)
        if isinstance(found, dict) and found.get(inner) == []:
            kept[outer] = kept[outer] | {inner: []}
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
