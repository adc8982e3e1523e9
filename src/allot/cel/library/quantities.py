"""Kubernetes' quantities and versions."""

from __future__ import annotations

from typing import Final

from allot.api.quantity import Quantity, QuantityError
from allot.api.semver import Semver, SemverError
from allot.cel.declarations import function, overload
from allot.cel.errors import EvalError
from allot.cel.library.arithmetic import checked_int
from allot.cel.library.memoize import memoized


def _quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise EvalError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _compare_quantities(left: Quantity, right: Quantity) -> int:
    return (left.nanos > right.nanos) - (left.nanos < right.nanos)


def _compare_versions(left: Semver, right: Semver) -> int:
    if left == right:
        return 0
    return -1 if left < right else 1


def _as_integer(quantity: Quantity) -> int:
    amount = quantity.as_int64()
    if amount is None:
        raise EvalError("cannot convert value to integer")
    return amount


def _whole(amount: int) -> Quantity:
    return Quantity.of(amount, "DecimalExponent")


QUANTITIES: Final = (
    function("quantity", overload("string_to_quantity", "(string) -> quantity", _quantity)),
    function("isQuantity", overload("is_quantity_string", "(string) -> bool", _is_quantity)),
    function("sign", overload("quantity_sign", "(quantity) -> int", lambda q: q.sign)),
    function(
        "isGreaterThan",
        overload("quantity_is_greater_than", "quantity.(quantity) -> bool", lambda a, b: b < a),
    ),
    function(
        "isLessThan",
        overload("quantity_is_less_than", "quantity.(quantity) -> bool", lambda a, b: a < b),
    ),
    function(
        "compareTo",
        overload("quantity_compare_to", "quantity.(quantity) -> int", _compare_quantities),
    ),
    function(
        "asApproximateFloat",
        overload("quantity_get_float", "quantity.() -> double", lambda q: q.nanos / 10**9),
    ),
    function("asInteger", overload("quantity_get_int", "quantity.() -> int", _as_integer)),
    function(
        "isInteger",
        overload("quantity_is_integer", "quantity.() -> bool", lambda q: q.as_int64() is not None),
    ),
    function(
        "add",
        overload("quantity_add", "quantity.(quantity) -> quantity", lambda a, b: a + b),
        overload("quantity_add_int", "quantity.(int) -> quantity", lambda a, b: a + _whole(b)),
    ),
    function(
        "sub",
        overload("quantity_sub", "quantity.(quantity) -> quantity", lambda a, b: a - b),
        overload("quantity_sub_int", "quantity.(int) -> quantity", lambda a, b: a - _whole(b)),
    ),
)


@memoized
def _strict_semver(text: str) -> Semver:
    try:
        return Semver.parse(text)
    except SemverError as error:
        raise EvalError(str(error)) from None


@memoized
def _normalized_semver(text: str) -> Semver:
    try:
        return Semver.parse(_normalized(text))
    except SemverError as error:
        raise EvalError(str(error)) from None


def _normalized(text: str) -> str:
    """Without a leading v and leading zeros, and with all three numbers."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            shortened = part.lstrip("0")
            if not shortened or shortened[0] not in "0123456789":
                shortened = "0" + shortened
            parts[index] = shortened
    if len(parts) < 3 and any(mark in parts[-1] for mark in "+-"):
        raise SemverError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])


def _semver(text: str, normalize: bool = False) -> Semver:
    return _normalized_semver(text) if normalize else _strict_semver(text)


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except EvalError:
        return False
    return True


def _as_int(number: int) -> int:
    """Numbers of a version fit uint64; as int they wrap around."""
    return checked_int((number + 2**63) % 2**64 - 2**63)


SEMVERS: Final = (
    function(
        "semver",
        overload("string_to_semver", "(string) -> semver", _semver),
        overload("string_bool_to_semver", "(string, bool) -> semver", _semver),
    ),
    function(
        "isSemver",
        overload("is_semver_string", "(string) -> bool", _is_semver),
        overload("is_semver_string_bool", "(string, bool) -> bool", _is_semver),
    ),
    function(
        "isGreaterThan",
        overload("semver_is_greater_than", "semver.(semver) -> bool", lambda a, b: b < a),
    ),
    function(
        "isLessThan",
        overload("semver_is_less_than", "semver.(semver) -> bool", lambda a, b: a < b),
    ),
    function(
        "compareTo", overload("semver_compare_to", "semver.(semver) -> int", _compare_versions)
    ),
    function("major", overload("semver_major", "semver.() -> int", lambda v: _as_int(v.major))),
    function("minor", overload("semver_minor", "semver.() -> int", lambda v: _as_int(v.minor))),
    function("patch", overload("semver_patch", "semver.() -> int", lambda v: _as_int(v.patch))),
)
