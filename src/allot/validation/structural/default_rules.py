"""Defaults in schemas: each of them must be what the schema allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from allot.deadline import Deadline, no_deadline
from allot.validation.fields import FieldError, FieldPath, forbidden, invalid
from allot.validation.structural.defaulting import DefaultsTooLargeError, with_defaults
from allot.validation.structural.embedded import validate_embedded
from allot.validation.structural.list_types import validate_list_types
from allot.validation.structural.pruning import prune
from allot.validation.structural.schemas import Schema
from allot.validation.structural.values import validate_value


def validate_defaults(
    schema: Schema,
    path: FieldPath,
    *,
    is_root: bool = True,
    in_metadata: bool = False,
    deadline: Deadline = no_deadline,
) -> Iterator[FieldError]:
    """Every default of a schema."""
    deadline()
    if schema.has_default:
        where = path / "default"
        if in_metadata:
            yield forbidden(where, "must not be set in top-level metadata")
        elif schema.default is not None or not schema.nullable:
            yield from _validate_default(schema.default, schema, where)
    for name, child in schema.properties.items():
        yield from validate_defaults(
            child,
            path / "properties" @ name,
            is_root=False,
            in_metadata=in_metadata or (is_root and name == "metadata"),
            deadline=deadline,
        )
    if schema.items is not None:
        yield from validate_defaults(
            schema.items, path / "items", is_root=False, in_metadata=in_metadata, deadline=deadline
        )
    if schema.additional is not None:
        yield from validate_defaults(
            schema.additional,
            path / "additionalProperties",
            is_root=False,
            in_metadata=in_metadata,
            deadline=deadline,
        )


def _validate_default(value: Any, schema: Schema, path: FieldPath) -> Iterator[FieldError]:
    if prune(value, schema) is not value:
        yield invalid(path, value, "must not have unknown fields")
        return
    try:
        filled = with_defaults(value, schema)
    except DefaultsTooLargeError as too_large:
        yield invalid(path, value, str(too_large))
        return
    for error in validate_value(filled, schema):
        relative_path = str(error.path)
        where = path if relative_path == "<nil>" else FieldPath(f"{path}.{relative_path}")
        yield error._replace(path=where)
    yield from validate_list_types(filled, schema, path)
    yield from validate_embedded(filled, schema, path)
