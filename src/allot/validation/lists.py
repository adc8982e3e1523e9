"""Lists with a limit and without duplicates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from allot.validation.fields import FieldError, FieldPath, duplicate, too_many

T = TypeVar("T")


def validate_items(
    items: Sequence[T],
    path: FieldPath,
    limit: int,
    validate: Callable[[T, FieldPath], Iterator[FieldError]],
) -> Iterator[FieldError]:
    """Every item, unless there are too many. The limit is a declared rule."""
    if len(items) > limit:
        yield too_many(path, len(items), limit, declared=True)
        return
    for index, item in enumerate(items):
        yield from validate(item, path @ index)


def duplicates(
    items: Sequence[T],
    path: FieldPath,
    key: Callable[[T], Hashable],
    *,
    declared: bool = True,
) -> Iterator[FieldError]:
    """Items whose key occurred before. A declared rule shows the item, others its key."""
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        identity = key(item)
        if identity in seen:
            yield duplicate(path @ index, item if declared else identity, declared=declared)
        seen.add(identity)


def repeated(items: Iterable[Hashable]) -> Iterator[bool]:
    """For each item, whether it occurred before. One look-up each: lists are as long as a request may be."""
    seen: set[Hashable] = set()
    for item in items:
        yield item in seen
        seen.add(item)


def identity(value: Any) -> bytes:
    """The same for equal JSON values only, so that lists and objects can be looked up."""
    return msgspec.json.encode(value, order="deterministic")
