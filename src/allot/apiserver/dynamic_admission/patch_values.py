"""The results of mutations: operations of a JSON patch, or a configuration that is merged into the object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from allot.api.identities import GroupVersionKind
from allot.apiserver.dynamic_admission.review_request import Document
from allot.apiserver.managed_fields.merging import MergeError, merge
from allot.apiserver.managed_fields.validation import type_problems
from allot.apiserver.managed_fields.value_types import ListType, MapType, ValueType
from allot.cel.library.patches import OBJECT, JsonPatchValue, ObjectValue
from allot.cel.values import CelList, Optional, Value, elements, from_key, is_list

MAX_LEVELS = 200


class MutationError(Exception):
    """A mutation cannot be applied."""


def operations_of(value: Value) -> list[Document]:
    """The operations of a JSON patch that an expression evaluates to."""
    if not is_list(value):
        raise MutationError("type mismatch: JSONPatchType.expression should evaluate to array")
    found: list[Document] = []
    for item in elements(cast("CelList", value)):
        if not isinstance(item, JsonPatchValue):
            raise MutationError(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch"
            )
        operation: Document = {
            "op": item.fields.get("op", ""),
            "path": item.fields.get("path", ""),
        }
        if item.fields.get("from"):
            operation["from"] = item.fields["from"]
        if "value" in item.fields:
            given = item.fields["value"]
            if isinstance(given, ObjectValue):
                _check_names(given, given.type_name)
            operation["value"] = plain(given)
        found.append(operation)
    return found


def _check_names(value: Value, expected: str, level: int = 0) -> None:
    """An `Object.spec` belongs to a field `spec` of an `Object`, and so on."""
    if level > MAX_LEVELS:
        raise MutationError("type mismatch: objects are nested too deeply")
    if isinstance(value, ObjectValue):
        if value.type_name != expected:
            raise MutationError(
                f'type mismatch: unexpected type name "{value.type_name}", expected "{expected}", '
                f"which matches field name path from root Object type"
            )
        for name, field in value.fields.items():
            _check_names(field, f"{expected}.{name}", level + 1)
    elif is_list(value):
        for item in elements(cast("CelList", value)):
            _check_names(item, expected, level + 1)
    elif isinstance(value, dict):
        for item in value.values():
            _check_names(item, expected, level + 1)


def plain(value: Value, level: int = 0) -> Any:
    """A value as JSON."""
    if level > MAX_LEVELS:
        raise MutationError("the value is nested too deeply")
    if isinstance(value, ObjectValue):
        return {name: plain(field, level + 1) for name, field in _fields(value.fields)}
    if is_list(value):
        return [plain(item, level + 1) for item in elements(cast("CelList", value))]
    if isinstance(value, dict):
        return {str(from_key(key)): plain(item, level + 1) for key, item in value.items()}
    if isinstance(value, Optional):
        return plain(value.value, level + 1) if value.has_value else None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise MutationError(
        "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "
        f"{type(value).__name__}"
    )


def _fields(fields: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    for name, value in fields.items():
        if isinstance(value, Optional) and not value.has_value:
            continue
        yield name, value


def merged_configuration(
    document: Document, gvk: GroupVersionKind, type_: ValueType | None, value: Value
) -> Document:
    """The document, of this kind and type, with the fields of an apply configuration."""
    if not isinstance(value, ObjectValue):
        raise MutationError("unsupported return type from ApplyConfiguration expression")
    _check_names(value, OBJECT)
    configuration = plain(value) | {"kind": gvk.kind, "apiVersion": str(gvk.group_version)}
    if type_ is None:
        raise MutationError(f"error applying patch: no schema for {gvk.kind}")
    problems = list(type_problems(type_, configuration))
    if problems:
        shown = problems[0] if len(problems) == 1 else "\n".join(("errors:", *problems))
        raise MutationError(
            f"error applying patch: failed to convert patch object to typed object: {shown}"
        )
    atomics = list(_atomics(type_, configuration, ""))
    if atomics:
        raise MutationError(
            "error applying patch: invalid ApplyConfiguration: "
            f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
        )
    try:
        merged: Document = merge(type_, document, configuration)
    except MergeError as error:
        raise MutationError(f"error applying patch: failed to merge patch: {error}") from None
    return merged


def _atomics(type_: ValueType, value: Any, path: str) -> Iterator[str]:
    """Parts that would replace others as a whole."""
    part = type_.part_for(value)
    if isinstance(value, dict) and isinstance(part, MapType):
        if part.atomic:
            yield path
        for name, item in value.items():
            found = part.fields.get(name)
            if found is not None:
                yield from _atomics(found, item, f"{path}.{name}")
    elif isinstance(value, list) and isinstance(part, ListType):
        if not part.associative:
            yield path
        for index, item in enumerate(value):
            yield from _atomics(part.element, item, f"{path}[{index}]")
