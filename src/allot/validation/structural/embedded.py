"""Objects inside objects (x-kubernetes-embedded-resource): they have a type and valid metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from allot.api.base import replace
from allot.api.decoding import from_value
from allot.api.meta import ObjectMeta
from allot.validation.core_names import path_segment_problems
from allot.validation.fields import FieldError, FieldPath, invalid, required
from allot.validation.metadata import validate_metadata
from allot.validation.structural.schemas import Schema

_EMPTY: Final = "must not be empty"
_NOT_TEXT: Final = "must be a string"
_is_1035_label: Final = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?").fullmatch
DNS_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation "
    "is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


MIXED_CASE: Final = "may have mixed case, but should otherwise match: "


def dns_1035_problems(text: str) -> list[str]:
    """A DNS label that starts with a letter."""
    problems = []
    if len(text.encode()) > 63:
        problems.append("must be no more than 63 characters")
    if not _is_1035_label(text):
        problems.append(DNS_1035_RULE)
    return problems


def validate_embedded(
    value: Any, schema: Schema, path: FieldPath | None = None
) -> Iterator[FieldError]:
    """All embedded resources below a value."""
    if not schema.has_embedded_below:
        return
    if isinstance(value, dict):
        if schema.is_embedded and path is not None:
            yield from _validate_resource(value, path)
        for name, item in value.items():
            child = schema.properties.get(name)
            if child is not None:
                yield from validate_embedded(
                    item, child, FieldPath(name) if path is None else path / name
                )
            elif schema.additional is not None and path is not None:
                yield from validate_embedded(item, schema.additional, path @ name)
    elif isinstance(value, list) and schema.items is not None and path is not None:
        for index, item in enumerate(value):
            yield from validate_embedded(item, schema.items, path @ index)


def _validate_resource(value: dict[str, Any], path: FieldPath) -> Iterator[FieldError]:
    for name in ("apiVersion", "kind"):
        if name not in value:
            yield required(path / name)
    for name, item in value.items():
        match name:
            case "apiVersion":
                yield from _validate_api_version(item, path / name)
            case "kind":
                yield from _validate_kind(item, path / name)
            case "metadata":
                yield from _validate_metadata(item, path / name)


def _validate_api_version(value: Any, path: FieldPath) -> Iterator[FieldError]:
    if not isinstance(value, str):
        yield invalid(path, value, _NOT_TEXT)
    elif not value:
        yield invalid(path, value, _EMPTY)
    elif value.count("/") > 1:
        yield invalid(path, value, f"unexpected GroupVersion string: {value}")


def _validate_kind(value: Any, path: FieldPath) -> Iterator[FieldError]:
    if not isinstance(value, str):
        yield invalid(path, value, _NOT_TEXT)
    elif not value:
        yield invalid(path, value, _EMPTY)
    else:
        for problem in dns_1035_problems(value.lower()):
            yield invalid(path, value, f"{MIXED_CASE}{problem}")


def _validate_metadata(value: Any, path: FieldPath) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        yield invalid(path, value, f"invalid type: expected object, got {type(value).__name__}")
        return
    try:
        metadata = msgspec.convert(
            {name: item for name, item in value.items() if item is not None},
            ObjectMeta,
            dec_hook=from_value,
        )
    except msgspec.ValidationError as problem:
        yield invalid(path, value, str(problem))
        return
    if not metadata.name:
        metadata = replace(metadata, name="fakename")
    for error in validate_metadata(
        metadata,
        namespaced=bool(metadata.namespace),
        name_problems=path_segment_problems,
    ):
        where = str(error.path).removeprefix("metadata").removeprefix(".")
        yield error._replace(path=path / where)
