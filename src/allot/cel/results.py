"""Results of evaluations: a boolean for a selector, an attribute value for a derived attribute."""

from __future__ import annotations

from typing import Final, cast

from allot.api.quantity import Quantity
from allot.api.semver import Semver
from allot.cel import types
from allot.cel.device import AttributeValue
from allot.cel.errors import EvalError
from allot.cel.library.network import Cidr, Ip
from allot.cel.library.urls import Url
from allot.cel.steps import in_steps
from allot.cel.types import Type, TypeKind
from allot.cel.values import (
    CelList,
    DomainMap,
    Duration,
    JoinedList,
    Optional,
    Timestamp,
    Uint,
    Value,
    elements,
    is_list,
    type_of,
)
from allot.deadline import Deadline


def selector_type_problem(type_: Type, attribute: Type) -> str | None:
    """Why a selector may not have this type; None if it may."""
    if type_ in (types.BOOL, attribute):
        return None
    return f"must evaluate to bool or the unknown type, not {type_}"


_SCALARS: Final = (
    types.BOOL, types.INT, types.STRING, types.ANY, types.DYN, types.SEMVER,
)  # fmt: skip


def derived_type_problem(type_: Type, *, lists_allowed: bool) -> str | None:
    """Why a derived attribute may not have this type; None if it may."""
    if type_ in _SCALARS:
        return None
    if lists_allowed and type_.kind is TypeKind.LIST and type_.parameters[0] in _SCALARS:
        return None
    lists = " or a list of these scalars" if lists_allowed else ""
    return (
        "must evaluate to a primitive scalar (string, integer, boolean, semver)"
        f"{lists}, not {type_}"
    )


def as_decision(value: Value) -> bool:
    """A selector's answer; EvalError if the value is not a boolean."""
    held = _held(value)
    if type(held) is bool:
        return held
    reason = _BOOL_CONVERSION.get(type(held), "type conversion error from '{}' to 'bool'")
    raise EvalError(
        f"CEL result of type {type_of(value).name} could not be converted to bool: "
        f"{reason.format(type_of(held).name)}"
    )


def _held(value: Value) -> Value:
    """The value within nested optionals; an optional only if it is empty."""
    while isinstance(value, Optional) and value.has_value:
        value = value.value
    return value


_BOOL_CONVERSION: Final[dict[type, str]] = {
    int: "unsupported type conversion from 'int' to bool",
    Uint: "unsupported type conversion from 'uint' to bool",
    float: "type conversion error from Double to 'bool'",
    str: "unsupported native conversion from string to 'bool'",
    bytes: "type conversion error from Bytes to 'bool'",
    list: "type conversion error from list to 'bool'",
    JoinedList: "type conversion error from list to 'bool'",
    DomainMap: "not implemented",
    types.Type: "type conversion not supported for 'type'",
    Optional: "optional.none() dereference",
    dict: "type conversion error from map to 'bool'",
    Timestamp: "type conversion error from 'Timestamp' to 'bool'",
    Duration: "type conversion error from 'Duration' to 'bool'",
    Semver: "type conversion error from 'Semver' to 'bool'",
    Quantity: "type conversion error from 'Quantity' to 'bool'",
    Ip: "type conversion error from 'IP' to 'bool'",
    Cidr: "type conversion error from 'CIDR' to 'bool'",
    Url: "type conversion error from 'URL' to 'bool'",
}


def as_attribute(value: Value, deadline: Deadline) -> AttributeValue:
    """A derived attribute's value; EvalError if the value cannot be one."""
    if is_list(value):
        return _list_attribute(elements(cast("CelList", value), deadline), deadline)
    native = _native(value)
    match native:
        case bool():
            return AttributeValue(bool_=native)
        case Uint():
            pass
        case int():
            return AttributeValue(int_=native)
        case str():
            return AttributeValue(string=native)
        case Semver():
            return AttributeValue(version=str(native))
    raise EvalError(f"unsupported CEL return type: {_go_type(native)}")


def _native(value: Value) -> Value:
    """The native Go value: of a type its name, of an optional its value."""
    held = _held(value)
    return held.name if isinstance(held, types.Type) else held


_LIST_KINDS: Final[dict[type, str]] = {bool: "bool", int: "int", str: "string", Semver: "semver"}


def _list_attribute(items: list[Value], deadline: Deadline) -> AttributeValue:
    if not items:
        return AttributeValue(strings=())
    values = list(map(_native, in_steps(items, deadline)))
    first = type(values[0])
    wanted = _LIST_KINDS.get(first)
    if wanted is None:
        raise EvalError(f"unsupported list element type: {_go_type(values[0])}")
    for index, value in enumerate(in_steps(values, deadline)):
        if type(value) is not first:
            raise EvalError(
                f"expected list element at index {index} to be {wanted}, got {_go_type(value)}"
            )
    if first is bool:
        return AttributeValue(bools=tuple(cast("list[bool]", values)))
    if first is int:
        return AttributeValue(ints=tuple(cast("list[int]", values)))
    if first is str:
        return AttributeValue(strings=tuple(cast("list[str]", values)))
    return AttributeValue(versions=tuple(map(str, in_steps(values, deadline))))


_GO_TYPES: Final[dict[type, str]] = {
    type(None): "structpb.NullValue",
    bool: "bool",
    int: "int64",
    Uint: "uint64",
    float: "float64",
    str: "string",
    bytes: "[]uint8",
    list: "[]ref.Val",
    dict: "map[ref.Val]ref.Val",
    Timestamp: "time.Time",
    Duration: "time.Duration",
    JoinedList: "[]interface {}",
    Optional: "<nil>",
    Quantity: "*resource.Quantity",
    Semver: "semver.Version",
    Url: "*url.URL",
}


def _go_type(value: Value) -> str:
    return _GO_TYPES.get(type(value), type_of(value).name)
