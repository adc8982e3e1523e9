"""Validation of values by a schema, with the messages of Kubernetes' OpenAPI validator.

A value that is unchanged in an update is not validated again (ratcheting).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from allot.validation.fields import (
    ErrorType,
    FieldError,
    FieldPath,
    invalid,
    show_value,
)
from allot.validation.structural.correlation import NO_OLD, Correlation
from allot.validation.structural.formats import has_format
from allot.validation.structural.schemas import Schema

BODY: Final = "body"
_INT_FORMATS: Final = {"int32": 2**31, "int64": 2**63}


def validate_value(
    new: Any, schema: Schema, path: str = "", *, old: Any = NO_OLD
) -> Iterator[FieldError]:
    """What is wrong with a value, or with its changes if there is an old one."""
    yield from _validate(Correlation(new, old, schema), path)


def _validate(value: Correlation, path: str) -> Iterator[FieldError]:
    found = list(_problems(value, path))
    if found and value.is_unchanged:
        return
    yield from found


def _problems(value: Correlation, path: str) -> Iterator[FieldError]:
    schema, data = value.schema, value.new
    type_problem = _type_problem(data, schema, path)
    if type_problem is not None:
        yield type_problem
    if data is None:
        if type_problem is None:
            yield from _enum_problems(data, schema, path)
        return
    if schema.has_constraints:
        yield from _combinations(data, schema, path)
    match data:
        case str():
            yield from _text_problems(data, schema, path)
        case bool():
            pass
        case int() | float():
            yield from _number_problems(data, schema, path)
        case list():
            yield from _list_problems(value, path)
    yield from _enum_problems(data, schema, path)
    if isinstance(data, dict):
        yield from _object_problems(value, path)


# --- errors ---


def _at(path: str) -> FieldPath:
    return FieldPath(path or "<nil>")


def _said(path: str, text: str) -> str:
    return f"{path} in {BODY} {text}"


def _invalid(path: str, value: Any, text: str) -> FieldError:
    return invalid(_at(path), value, _said(path, text))


def _wrong_type(path: str, wanted: str, found: str) -> FieldError:
    text = _said(path, f"must be of type {wanted}: {show_value(found)}")
    return FieldError(ErrorType.TYPE_INVALID, _at(path), found, text)


# --- types ---


def json_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() and abs(value) < 2**63 else "number"
        case list():
            return "array"
    return "object"


def _type_problem(value: Any, schema: Schema, path: str) -> FieldError | None:
    wanted = schema.type
    if schema.is_int_or_string:
        if value is None and schema.nullable:
            return None
        if json_type(value) in ("integer", "string"):
            return None
        return _wrong_type(path, "integer,string", json_type(value))
    if not wanted:
        return None
    if value is None:
        return None if schema.nullable else _wrong_type(path, wanted, "null")
    found = json_type(value)
    if found == wanted or (wanted == "number" and found == "integer"):
        return None
    if schema.format and wanted not in ("number", "integer") and isinstance(value, str | list):
        return None
    return _wrong_type(path, wanted, found)


# --- combinations ---


def _fits(value: Any, schema: Schema, path: str) -> bool:
    return next(_validate(Correlation(value, NO_OLD, schema), path), None) is None


def _combinations(data: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.any_of and not any(_fits(data, each, path) for each in schema.any_of):
        yield _combination(path, "must validate at least one schema (anyOf)")
        yield from _best_match(data, schema.any_of, path)
    if schema.one_of:
        fitting = sum(_fits(data, each, path) for each in schema.one_of)
        if fitting == 0:
            yield _combination(
                path, "must validate one and only one schema (oneOf). Found none valid"
            )
            yield from _best_match(data, schema.one_of, path)
        elif fitting > 1:
            yield _combination(
                path,
                f"must validate one and only one schema (oneOf). Found {fitting} valid alternatives",
            )
    if schema.all_of:
        problems = [
            error
            for each in schema.all_of
            for error in _validate(Correlation(data, NO_OLD, each), path)
        ]
        fitting = sum(_fits(data, each, path) for each in schema.all_of)
        if problems:
            none = ". None validated" if not fitting else ""
            yield from problems
            yield _combination(path, f"must validate all the schemas (allOf){none}")
    if schema.not_ is not None and _fits(data, schema.not_, path):
        yield _combination(path, "must not validate the schema (not)")


def _combination(path: str, text: str) -> FieldError:
    return invalid(FieldPath("<nil>"), "", f'"{path}" {text}')


def _best_match(data: Any, schemas: tuple[Schema, ...], path: str) -> Iterator[FieldError]:
    """The problems with the alternative that fits best: the first one that has the fewest."""
    found = [list(_validate(Correlation(data, NO_OLD, each), path)) for each in schemas]
    yield from min(found, key=len, default=())


# --- texts ---


def _text_problems(data: str, schema: Schema, path: str) -> Iterator[FieldError]:
    maximum, minimum = schema.max_length, schema.min_length
    if maximum is not None and len(data) > maximum:
        unit = "byte" if maximum == 1 else "bytes"
        detail = f"may not be more than {maximum} {unit}"
        yield FieldError(ErrorType.TOO_LONG, _at(path), data, detail)
    elif minimum is not None and len(data) < minimum:
        yield _invalid(path, data, f"should be at least {minimum} chars long")
    elif schema.pattern and (schema.regex is None or not schema.regex.is_in(data)):
        yield _invalid(path, data, f"should match '{schema.pattern}'")
    if schema.format and not has_format(data, schema.format):
        yield _wrong_type(path, schema.format, data)


# --- numbers ---


def _number_problems(data: float, schema: Schema, path: str) -> Iterator[FieldError]:
    yield from _range_problems(data, schema, path)
    divisor = schema.multiple_of
    if divisor is not None and not _is_multiple(data, divisor):
        yield _invalid(path, data, f"should be a multiple of {number_text(divisor)}")
    maximum, minimum = schema.maximum, schema.minimum
    if maximum is not None:
        if schema.is_exclusive_maximum and data >= maximum:
            yield _invalid(path, data, f"should be less than {number_text(maximum)}")
        elif data > maximum:
            yield _invalid(path, data, f"should be less than or equal to {number_text(maximum)}")
    if minimum is not None:
        if schema.is_exclusive_minimum and data <= minimum:
            yield _invalid(path, data, f"should be greater than {number_text(minimum)}")
        elif data < minimum:
            yield _invalid(path, data, f"should be greater than or equal to {number_text(minimum)}")


def _range_problems(data: float, schema: Schema, path: str) -> Iterator[FieldError]:
    """Numbers that integers of their format cannot be."""
    if schema.type != "integer":
        return
    is_whole = isinstance(data, int) or data.is_integer()
    size = _INT_FORMATS.get(schema.format, 2**63)
    if is_whole and -size <= data < size:
        return
    form = f"with format {schema.format}" if schema.format in _INT_FORMATS else "(default format)"
    problem = f"Checked value must be of type integer {form} in {path}"
    yield invalid(FieldPath("<nil>"), "", problem)


def _is_multiple(data: float, divisor: float) -> bool:
    if not divisor or not math.isfinite(data):
        return False
    if isinstance(data, int) and isinstance(divisor, int):
        return data % divisor == 0
    return Decimal(str(data)) % Decimal(str(divisor)) == 0


def number_text(value: float) -> str:
    """A number as Go prints it: whole ones without a fraction."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


# --- enums ---


def _enum_problems(data: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    if not schema.enum or any(_equals(data, each) for each in schema.enum):
        return
    allowed = ", ".join(
        f'"{each}"' if isinstance(each, str) else f'"{show_value(each)}"' for each in schema.enum
    )
    detail = f"supported values: {allowed}"
    yield FieldError(ErrorType.NOT_SUPPORTED, _at(path), data, detail)


def _equals(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    return type(left) is type(right) and bool(left == right)


# --- lists ---


def _list_problems(value: Correlation, path: str) -> Iterator[FieldError]:
    schema, data = value.schema, value.new
    if schema.items is not None:
        items = schema.items
        for index in range(len(data)):
            yield from _validate(value.item(index, items), f"{path}[{index}]")
    if schema.min_items is not None and len(data) < schema.min_items:
        yield _invalid(path, len(data), f"should have at least {schema.min_items} items")
    if schema.max_items is not None and len(data) > schema.max_items:
        yield _too_many(path, len(data), schema.max_items)


def _too_many(path: str, count: int, most: int) -> FieldError:
    unit = "item" if most == 1 else "items"
    detail = f"must have at most {most} {unit}"
    return FieldError(ErrorType.TOO_MANY, _at(path), count, detail)


# --- objects ---


def _object_problems(value: Correlation, path: str) -> Iterator[FieldError]:
    schema, data = value.schema, value.new
    if schema.min_properties is not None and len(data) < schema.min_properties:
        yield _invalid(path, len(data), f"should have at least {schema.min_properties} properties")
        return
    if schema.max_properties is not None and len(data) > schema.max_properties:
        yield _too_many(path, len(data), schema.max_properties)
        return
    properties, additional = schema.properties, schema.additional
    for name in data:
        child = properties.get(name)
        if child is None:
            child = additional
            if child is None:
                continue
        yield from _validate(value.field(name, child), f"{path}.{name}" if path else name)
    for name in schema.required:
        if name not in data:
            where = f"{path}.{name}" if path else name
            yield FieldError(ErrorType.REQUIRED, FieldPath(where), None, "")
