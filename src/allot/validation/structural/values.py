"""Validation of values by a schema, with the messages of Kubernetes' OpenAPI validator.

A value that is unchanged in an update is not validated again (ratcheting).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain, islice
from typing import Any, Final

from allot.validation.fields import (
    MAX_ERRORS,
    ErrorType,
    FieldError,
    FieldPath,
    forbidden,
    invalid,
    show_value,
)
from allot.validation.structural.correlation import (
    NO_OLD,
    Correlation,
    OutOfStepsError,
    StepBudget,
    same,
)
from allot.validation.structural.formats import has_format
from allot.validation.structural.schemas import Schema

BODY: Final = "body"
MOST_PROBLEMS: Final = 50
"""Problems with one alternative that are looked for."""
MAX_STEPS: Final = 400_000
"""Parts of schemas that are applied to the values of one object: a few seconds of work."""
TOO_COMPLEX: Final = "the object and its schema are too complex to be validated"
LARGE_PATTERN: Final = 1_000
"""Patterns with more instructions may be followed one by one instead of by a table ..."""
PATTERN_STEPS: Final = 20_000_000
"""... so that the length of strings is limited by this, which takes about 0.2 s."""
_INT_FORMATS: Final = {"int32": 2**31, "int64": 2**63}


def validate_value(
    new: Any, schema: Schema, path: str = "", *, old: Any = NO_OLD
) -> Iterator[FieldError]:
    """What is wrong with a value, or with its changes if there is an old one."""
    try:
        yield from _validate(Correlation(new, old, schema, StepBudget(MAX_STEPS)), path)
    except OutOfStepsError:
        yield forbidden(_at(path), TOO_COMPLEX)


def _validate(value: Correlation, path: str) -> Iterator[FieldError]:
    if value.budget is not None:
        value.budget.take()
    found = list(islice(_problems(value, path), MAX_ERRORS))
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
        yield from _combinations(value, path)
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


def _with_path(path: str, text: str) -> str:
    return f"{path} in {BODY} {text}"


def _invalid(path: str, value: Any, text: str) -> FieldError:
    return invalid(_at(path), value, _with_path(path, text))


def _wrong_type(path: str, wanted: str, found: str) -> FieldError:
    text = _with_path(path, f"must be of type {wanted}: {show_value(found)}")
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


def _combinations(value: Correlation, path: str) -> Iterator[FieldError]:
    """allOf, anyOf, oneOf and not. Each alternative is validated once, however deep they nest."""
    schema = value.schema
    if schema.any_of:
        found = _problems_with_each(value, schema.any_of, path)
        if all(found):
            yield _combination(path, "must validate at least one schema (anyOf)")
            yield from min(found, key=len)
    if schema.one_of:
        found = _problems_with_each(value, schema.one_of, path)
        fitting = sum(not problems for problems in found)
        if fitting == 0:
            yield _combination(
                path, "must validate one and only one schema (oneOf). Found none valid"
            )
            yield from min(found, key=len)
        elif fitting > 1:
            yield _combination(
                path,
                f"must validate one and only one schema (oneOf). Found {fitting} valid alternatives",
            )
    if schema.all_of:
        found = _problems_with_each(value, schema.all_of, path)
        if any(found):
            none = ". None validated" if all(found) else ""
            yield from chain.from_iterable(found)
            yield _combination(path, f"must validate all the schemas (allOf){none}")
    if schema.not_ is not None and not _problems_with_each(value, (schema.not_,), path)[0]:
        yield _combination(path, "must not validate the schema (not)")


def _problems_with_each(
    value: Correlation, schemas: tuple[Schema, ...], path: str
) -> list[list[FieldError]]:
    return [
        list(
            islice(
                _validate(Correlation(value.new, NO_OLD, each, value.budget), path), MOST_PROBLEMS
            )
        )
        for each in schemas
    ]


def _combination(path: str, text: str) -> FieldError:
    return invalid(FieldPath("<nil>"), "", f'"{path}" {text}')


# --- texts ---


def _text_problems(data: str, schema: Schema, path: str) -> Iterator[FieldError]:
    maximum, minimum = schema.max_length, schema.min_length
    if maximum is not None and len(data) > maximum:
        unit = "byte" if maximum == 1 else "bytes"
        detail = f"may not be more than {maximum} {unit}"
        yield FieldError(ErrorType.TOO_LONG, _at(path), data, detail)
    elif minimum is not None and len(data) < minimum:
        yield _invalid(path, data, f"should be at least {minimum} chars long")
    elif schema.pattern:
        yield from _pattern_problems(data, schema, path)
    if schema.format and not has_format(data, schema.format):
        yield _wrong_type(path, schema.format, data)


def _pattern_problems(data: str, schema: Schema, path: str) -> Iterator[FieldError]:
    regex = schema.regex
    if regex is not None and regex.size > LARGE_PATTERN:
        longest = PATTERN_STEPS // regex.size
        if len(data) > longest:
            problem = f"is too long to be matched with its pattern: at most {longest} characters"
            yield _invalid(path, data[:64], problem)
            return
    if regex is None or not regex.is_in(data):
        yield _invalid(path, data, f"should match '{schema.pattern}'")


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
    if not schema.enum or _is_listed(data, schema):
        return
    allowed = ", ".join(
        f'"{each}"' if isinstance(each, str) else f'"{show_value(each)}"' for each in schema.enum
    )
    detail = f"supported values: {allowed}"
    yield FieldError(ErrorType.NOT_SUPPORTED, _at(path), data, detail)


def _is_listed(data: Any, schema: Schema) -> bool:
    if isinstance(data, dict | list):
        return any(same(data, each) for each in schema.enum)
    return (isinstance(data, bool), data) in schema.scalars_of_enum


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
