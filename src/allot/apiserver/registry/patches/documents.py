"""Documents: decoded JSON, in which a `msgspec.Raw` is a value that is kept as bytes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import msgspec

from allot.api.decoding import DecodeError
from allot.api.json_limits import MAX_VALUES, has_too_many_values, is_too_deep
from allot.api.json_syntax import syntax_problem
from allot.apiserver.registry.patches.errors import PatchError

TOO_DEEP: Final = "json: document is nested too deeply"


def decode_document(body: bytes) -> Any:
    """The JSON value in `body`; `DecodeError` if it is not JSON or is nested too deeply.

    Numbers come out as they went in: whole numbers of any size as `int`, the others as `float`.
    """
    try:
        value = msgspec.json.decode(body)
    except RecursionError:
        raise DecodeError(TOO_DEEP) from None
    except (msgspec.DecodeError, ValueError) as error:  # ValueError: too many digits, not UTF-8
        raise DecodeError(f"json: {error}") from None
    if is_too_deep(body):
        raise DecodeError(TOO_DEEP)
    return value


def decode_patch(patch: bytes) -> Any:
    """The value in the body of a patch; `PatchError` if it is not JSON."""
    if has_too_many_values(patch):
        raise PatchError.too_large(
            f"Request entity too large: a document may have at most {MAX_VALUES} values"
        )
    try:
        return decode_document(patch)
    except DecodeError as error:
        if TOO_DEEP not in str(error) and syntax_problem(patch):
            raise PatchError.malformed("invalid JSON patch") from None
        raise PatchError.malformed(f"error decoding patch: {error}") from None


def not_a_map(value: Any) -> str:
    """Go's error about a patch that must be an object."""
    return (
        f"json: cannot unmarshal {kind_of(value)} into Go value of type map[string]interface {{}}"
    )


def plain(value: Any) -> Any:
    """The value itself: a `Raw` is decoded, everything else is what it is. Looks no further inside."""
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return decode_document(bytes(value)) if bytes(value) else None
    except DecodeError as error:
        raise PatchError.unfit(f"the stored value cannot be patched: {error}") from None


def depth(value: Any, limit: int) -> int:
    """How deeply lists and objects are nested; counts no further than one above `limit`."""
    level = [value]
    for count in range(limit + 1):
        level = [container for container in level if isinstance(container, dict | list)]
        if not level:
            return count
        level = [
            inner
            for container in level
            for inner in (container.values() if isinstance(container, dict) else container)
        ]
    return limit + 1


def is_same(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON. 1 and 1.0 are, 1 and true are not."""
    left, right = plain(left), plain(right)
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(is_same(value, right[name]) for name, value in left.items())
        )
    if isinstance(left, list):
        return (
            isinstance(right, list) and len(left) == len(right) and all(map(is_same, left, right))
        )
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def identity(value: Any) -> Hashable:
    """A hashable stand-in: equal for what `is_same` calls the same."""
    value = plain(value)
    if isinstance(value, dict):
        return "object", frozenset((name, identity(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return "list", tuple(map(identity, value))
    return isinstance(value, bool), value


def kind_of(value: Any) -> str:
    """The name of a value's type in error messages."""
    match plain(value):
        case dict():
            return "object"
        case list():
            return "array"
        case str():
            return "string"
        case bool():
            return "bool"
        case None:
            return "null"
    return "number"
