"""The language's own conformance tests, on both evaluators.

The data lives beside the project and is not part of it; without it these tests are skipped. Left
out are tests that need protobuf messages and extensions our environment does not have.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from allot.api.durations import NANOSECONDS
from allot.cel import macros, types
from allot.cel.checker import check
from allot.cel.codegen import fast_function
from allot.cel.declarations import Function, Overload
from allot.cel.environment import Environment, merge_functions
from allot.cel.errors import CelCompileError, EvalError
from allot.cel.frame import EvaluationFrame
from allot.cel.interpreter import interpretable
from allot.cel.library import (
    arithmetic,
    conversions,
    lists,
    maps,
    messages,
    optionals,
    strings,
    times,
)
from allot.cel.parser import parse
from allot.cel.planner import plan
from allot.cel.source import Source
from allot.cel.types import Type, TypeKind
from allot.cel.values import Duration, Timestamp, Uint, Value, elements, is_list, to_key, type_of
from allot.deadline import no_deadline

DATA: Final = Path(__file__).parents[2].parent / "shared" / "cel-spec" / "conformance.jsonl"
FILES: Final = frozenset(
    [
        "basic",
        "bindings_ext",
        "comparisons",
        "conversions",
        "dynamic",
        "fields",
        "fp_math",
        "integer_math",
        "lists",
        "logic",
        "macros",
        "macros2",
        "namespace",
        "optionals",
        "parse",
        "plumbing",
        "string",
        "string_ext",
        "timestamps",
        "type_deduction",
    ]
)
LEFT_OUT: Final = frozenset({("string_ext", "reverse")})
"""Kubernetes has version 2 of the string extension; `reverse` came with version 3."""

_KEYS = "cel-go, and so Kubernetes, takes any number or null as a key"
_REPEATED = "cel-go, and so Kubernetes, lets the last of repeated keys win"
_ESCAPED = "the expected value has a backslash that the expression does not have"
_PRESENCE = "Kubernetes does not ask cel-go to refuse presence tests on what has no parts"
EXCEPTIONS: Final = {
    ("fields", "qualified_identifier_resolution", "map_key_float"): _KEYS,
    ("fields", "qualified_identifier_resolution", "map_key_null"): _KEYS,
    ("fields", "qualified_identifier_resolution", "map_value_repeat_key"): _REPEATED,
    ("fields", "qualified_identifier_resolution", "map_value_repeat_key_heterogeneous"): _REPEATED,
    ("parse", "bytes_literals", "triple_single_quoted_unescaped_punctuation"): _ESCAPED,
    ("parse", "bytes_literals", "triple_double_quoted_unescaped_punctuation"): _ESCAPED,
    ("optionals", "optionals", "map_null_entry_no_such_key"): _PRESENCE,
    ("optionals", "optionals", "map_present_key_invalid_field"): _PRESENCE,
    ("dynamic", "value_null", "literal"): "needs the protobuf message Value",
    (
        "timestamps",
        "duration_converters",
        "get_milliseconds",
    ): "cel-go counts the milliseconds of the whole duration",
}

FUNCTIONS: Final = merge_functions(
    (
        arithmetic.FUNCTIONS,
        conversions.FUNCTIONS,
        times.FUNCTIONS,
        strings.STANDARD,
        strings.EXTENDED,
        strings.PLAIN_FORMAT,
        optionals.FUNCTIONS,
        lists.ENDS,
        lists.EXTENDED,
        maps.INSERT,
    )
)
MACROS: Final = {
    **macros.STANDARD,
    **macros.BINDINGS,
    **macros.OPTIONALS,
    **macros.LISTS,
    **macros.TWO_VARIABLES,
}
PRIMITIVES: Final = {
    "BOOL": types.BOOL,
    "BYTES": types.BYTES,
    "DOUBLE": types.DOUBLE,
    "INT64": types.INT,
    "STRING": types.STRING,
    "UINT64": types.UINT,
}
WELL_KNOWN: Final = {
    "ANY": types.ANY,
    "DURATION": types.DURATION,
    "TIMESTAMP": types.TIMESTAMP,
}


def cases() -> list[dict[str, Any]]:
    if not DATA.exists():
        return []
    every = map(json.loads, DATA.read_text().splitlines())
    return [
        case
        for case in every
        if case["file"] in FILES
        and not case["proto"]
        and (case["file"], case["section"]) not in LEFT_OUT
    ]


CASES: Final = cases()
needs_data = pytest.mark.skipif(not CASES, reason="shared/cel-spec is not beside the project")


def key(case: dict[str, Any]) -> tuple[str, str, str]:
    return case["file"], case["section"], case["name"]


def type_from(described: dict[str, Any]) -> Type:
    ((kind, value),) = described.items()
    match kind:
        case "primitive":
            return PRIMITIVES[value]
        case "wellKnown":
            return WELL_KNOWN[value]
        case "wrapper":
            return types.wrapper_of(PRIMITIVES[value])
        case "listType":
            return types.list_of(type_from(value["elemType"]))
        case "mapType":
            return types.map_of(type_from(value["keyType"]), type_from(value["valueType"]))
        case "typeParam":
            return types.parameter(value)
        case "type":
            return types.type_of_type(type_from(value))
        case "abstractType":
            inner = tuple(map(type_from, value.get("parameterTypes", [])))
            return Type(TypeKind.OPAQUE, value["name"], inner)
        case "messageType":
            known = {type_.name: type_ for type_ in WELL_KNOWN.values()}
            return known.get(value, Type(TypeKind.STRUCT, value))
        case "null":
            return types.NULL
        case _:
            return types.DYN


class NamedType(NamedTuple):
    """A type that is expected as a value."""

    name: str


def value_from(described: dict[str, Any]) -> Value:
    value: Any = described.get("v")
    match described["t"]:
        case "null":
            return None
        case "uint":
            return Uint(value)
        case "double":
            return float(value)
        case "bytes":
            return base64.b64decode(value)
        case "list":
            return list(map(value_from, value))
        case "map":
            return {to_key(value_from(k)): value_from(v) for k, v in value}
        case "type":
            return NamedType(value)
        case "timestamp":
            return Timestamp(value[0] * NANOSECONDS + value[1])
        case "duration":
            return Duration(value[0] * NANOSECONDS + value[1])
        case _:
            return value


def is_same(found: Value, expected: Value) -> bool:
    if isinstance(expected, NamedType):
        return isinstance(found, Type) and found.name == expected.name
    if type_of(found) != type_of(expected):
        return False
    if isinstance(found, float) and isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    if is_list(found) and isinstance(expected, list):
        items = elements(found)  # type: ignore[arg-type]
        return len(items) == len(expected) and all(map(is_same, items, expected))
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            is_same(value, expected[k]) for k, value in found.items()
        )
    return found == expected


def environment_of(case: dict[str, Any]) -> Environment:
    variables: dict[str, Type] = {}
    functions = dict(FUNCTIONS)
    for declared in case["type_env"]:
        name = declared["name"]
        if "ident" in declared:
            variables[name] = type_from(declared["ident"]["type"])
        else:
            functions[name] = Function(name, tuple(overloads_from(declared["function"])))
    for name in case["bindings"]:
        variables.setdefault(name, types.DYN)
    return Environment(
        variables,
        messages.MESSAGES,
        functions,
        {} if case["disable_macros"] else MACROS,
        container=case["container"],
        is_checked=not case["disable_check"],
    )


def overloads_from(described: dict[str, Any]) -> Iterator[Overload]:
    for overload in described["overloads"]:
        parameters = tuple(map(type_from, overload.get("params", [])))
        is_member = overload.get("isInstanceFunction", False)
        yield Overload(
            overload["overloadId"], is_member, parameters, type_from(overload["resultType"])
        )


def answers(case: dict[str, Any]) -> Iterator[tuple[Value, Type]]:
    """What each evaluator makes of a case. The fast one may pass."""
    environment = environment_of(case)
    source = Source(case["expr"])
    syntax = parse(source, environment.macros)
    checked = check(syntax, source, environment)
    if case["check_only"]:
        yield None, checked.types[syntax]
        return
    planned = plan(checked, environment)
    variables = {name: value_from(value) for name, value in case["bindings"].items()}
    frame = EvaluationFrame(variables, planned.slots, 10**9, no_deadline)
    yield interpretable(planned)(frame), checked.types[syntax]
    fast = fast_function(planned)
    if fast is not None:
        try:
            yield fast(variables, no_deadline), checked.types[syntax]
        except Exception:  # noqa: BLE001
            return


def agrees(case: dict[str, Any]) -> bool:
    expected = case["expect"]
    try:
        found = list(answers(case))
    except CelCompileError:
        return "error" in expected
    if "error" in expected:
        return all(isinstance(value, EvalError) for value, _ in found)
    if "type" in expected and any(type_ != type_from(expected["type"]) for _, type_ in found):
        return False
    if case["check_only"]:
        return True
    return all(is_same(value, value_from(expected["value"])) for value, _ in found)


@needs_data
@pytest.mark.parametrize("file", sorted(FILES))
def test_agrees_with_the_specification(file: str) -> None:
    wrong = [key(case) for case in CASES if case["file"] == file and not agrees(case)]

    assert [case for case in wrong if case not in EXCEPTIONS] == []


@needs_data
def test_exceptions_are_few_and_still_needed() -> None:
    assert len(EXCEPTIONS) < 0.01 * len(CASES)
    by_key = {key(case): case for case in CASES}
    assert [name for name in EXCEPTIONS if agrees(by_key[name])] == []
