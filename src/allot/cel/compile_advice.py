"""Suggestions for expressions that do not compile. The messages themselves are those of Kubernetes."""

from __future__ import annotations

import re
from typing import Final

from allot.api.similar_names import did_you_mean, similar_names

_DEVICE_FIELDS: Final = ("allowMultipleAllocations", "attributes", "capacity", "driver", "name")
_NAMES: Final = (
    *("device", "quantity", "semver", "isQuantity", "isSemver", "size", "has", "cel"),
    *("all", "exists", "exists_one", "filter", "map", "includes", "matches", "find", "findAll"),
    *("compareTo", "isGreaterThan", "isLessThan", "sign", "asInteger", "asApproximateFloat"),
    *("startsWith", "endsWith", "contains", "indexOf", "lastIndexOf", "lowerAscii", "upperAscii"),
    *("replace", "split", "join", "substring", "trim", "charAt", "major", "minor", "patch"),
    *("int", "uint", "double", "string", "bool", "orValue", "optional"),
)
_TYPO: Final = 0.75
_field: Final = re.compile(r"undefined field '(?P<name>\w+)'").search
_reference: Final = re.compile(r"undeclared reference to '(?P<name>\w+)'").search
_comparison: Final = re.compile(
    r"no matching overload for '_(?P<operator><|>|<=|>=)_' applied to '\((?P<left>.+?), (?P<right>.+)\)'"
).search
_COMPARABLE: Final = {
    "kubernetes.Quantity": ("quantities", 'quantity("10Gi")'),
    "kubernetes.Semver": ("versions", 'semver("1.2.3")'),
}


def compile_advice(message: str) -> str:
    """What was probably meant, to append to the message: `; did you mean attributes?`. Empty if unclear."""
    if found := _field(message):
        return did_you_mean(similar_names(found["name"], _DEVICE_FIELDS, min_similarity=_TYPO))
    if found := _reference(message):
        return did_you_mean(similar_names(found["name"], _NAMES, min_similarity=_TYPO))
    if found := _comparison(message):
        return _comparison_advice(found["operator"], found["left"], found["right"])
    return ""


def _comparison_advice(operator: str, left: str, right: str) -> str:
    for type_, (plural, example) in _COMPARABLE.items():
        if type_ in (left, right):
            other = right if left == type_ else left
            hint = "" if other == type_ else f", where b is such as {example}"
            return f"; {plural} are compared with a.compareTo(b) {operator} 0{hint}"
    return ""
