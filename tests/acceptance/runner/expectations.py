"""Expectations: what must hold of a document, `{path: status.phase, eq: Running}`, or of an error.

Both come back as sentences about what does not hold; none means all is well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from allot.api.quantity import Quantity
from tests.acceptance.runner.paths import Found, Json, find

Expectation: TypeAlias = Mapping[str, Json]
"""A path, and one or more operators with what they want."""

SHOWN_CHARACTERS = 400


def unmet(document: Json, expectations: Sequence[Expectation]) -> list[str]:
    return [sentence for each in expectations for sentence in _unmet(document, each)]


def _unmet(document: Json, expectation: Expectation) -> Iterator[str]:
    path = expectation.get("path", "")
    found = find(document, path)
    for operator, wanted in expectation.items():
        if operator != "path" and not OPERATORS[operator](found, wanted):
            got = shown(found.value) if found.values or found.is_many else "nothing"
            yield f"{path or 'the answer'}: expected {operator} {shown(wanted)}, got {got}"


def is_superset(wanted: Json, given: Json) -> bool:
    """Objects may hold more than is wanted, at any depth; lists must be as long."""
    match wanted:
        case dict():
            return isinstance(given, dict) and all(
                key in given and is_superset(value, given[key]) for key, value in wanted.items()
            )
        case list():
            return (
                isinstance(given, list)
                and len(wanted) == len(given)
                and all(map(is_superset, wanted, given))
            )
        case _:
            return bool(wanted == given)


def _equals(found: Found, wanted: Json) -> bool:
    return bool(found.value == wanted)


def _sorted(found: Found, wanted: Json) -> bool:
    return isinstance(found.value, list) and sorted(map(str, found.value)) == sorted(
        map(str, wanted)
    )


def _contains(found: Found, wanted: Json) -> bool:
    return found.value is not None and all(each in found.value for each in one_or_many(wanted))


def _contains_none(found: Found, wanted: Json) -> bool:
    return found.value is None or not any(each in found.value for each in one_or_many(wanted))


def _matches(found: Found, wanted: Json) -> bool:
    return any(re.search(wanted, str(value)) for value in found.values)


def _length(found: Found) -> int:
    return 0 if found.value is None else len(found.value)


def _distinct(found: Found, wanted: Json) -> bool:
    """True wants all elements to differ, a number wants that many different ones."""
    if not isinstance(found.value, list):
        return False
    different = {json.dumps(element, sort_keys=True) for element in found.value}
    return len(different) == (len(found.value) if wanted is True else wanted)


def _all_equal(found: Found, wanted: Json) -> bool:
    return (
        isinstance(found.value, list)
        and bool(found.value)
        and all(element == wanted for element in found.value)
    )


def _quantity(value: Json) -> Quantity:
    return Quantity.parse(str(value))


def _is_quantity(found: Found, wanted: Json) -> bool:
    return found.value is not None and _quantity(found.value) == _quantity(wanted)


def _are_quantities(found: Found, wanted: Json) -> bool:
    return isinstance(found.value, list) and sorted(map(_quantity, found.value)) == sorted(
        map(_quantity, wanted)
    )


def _some_like(found: Found, wanted: Json) -> bool:
    return isinstance(found.value, list) and any(is_superset(wanted, each) for each in found.value)


OPERATORS: Mapping[str, Callable[[Found, Json], bool]] = {
    "eq": _equals,
    "ne": lambda found, wanted: not _equals(found, wanted),
    "in": lambda found, wanted: found.value in wanted,
    "sorted": _sorted,
    "contains": _contains,
    "notContains": _contains_none,
    "matches": _matches,
    "len": lambda found, wanted: bool(_length(found) == wanted),
    "minLen": lambda found, wanted: bool(_length(found) >= wanted),
    "distinct": _distinct,
    "allEq": _all_equal,
    "gt": lambda found, wanted: found.value is not None and bool(found.value > wanted),
    "ge": lambda found, wanted: found.value is not None and bool(found.value >= wanted),
    "lt": lambda found, wanted: found.value is not None and bool(found.value < wanted),
    "qty": _is_quantity,
    "qtys": _are_quantities,
    "like": lambda found, wanted: is_superset(wanted, found.value),
    "any": _some_like,
    "none": lambda found, wanted: not _some_like(found, wanted),
    "exists": lambda found, wanted: bool(found.values) == wanted,
}


class ErrorExpectation(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"
):
    """An error answer: always a proper Status, with these facts in it."""

    code: int | list[int] | None = None
    reason: str | None = None
    message: str | list[str] = []
    """Each is somewhere in the message."""
    field: str | list[str] = []
    """Each has a cause."""
    cause_reason: str | None = None

    def unmet(self, code: int, body: Json) -> list[str]:
        if code < 400:
            return [f"expected an error, but the answer was {code}: {shown(body)}"]
        return list(self._unmet(code, body))

    def _unmet(self, code: int, body: Json) -> Iterator[str]:
        proper = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
        if not is_superset(proper, body):
            yield f"the answer {code} is no proper Status: {shown(body)}"
            return
        if self.code is not None and code not in one_or_many(self.code):
            yield f"expected code {self.code}, got {code}: {shown(body)}"
        if self.reason is not None and body.get("reason") != self.reason:
            yield f"expected reason {self.reason}, got {body.get('reason')}"
        message = body.get("message", "")
        for part in one_or_many(self.message):
            if part not in message:
                yield f"expected a message with {part!r}, got {message!r}"
        causes = find(body, "details.causes[*]").values
        for field in one_or_many(self.field):
            if not any(cause.get("field") == field for cause in causes):
                yield f"expected a cause for {field}, got {shown(causes)}"
        reasons = [cause.get("reason") for cause in causes]
        if self.cause_reason is not None and self.cause_reason not in reasons:
            yield f"expected a cause with reason {self.cause_reason}, got {shown(causes)}"


def one_or_many(value: Json) -> list[Json]:
    """Many places of the format take one value or a list of them."""
    return value if isinstance(value, list) else [value]


def shown(value: Json) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
