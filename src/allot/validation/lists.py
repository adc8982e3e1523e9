"""Lists with a limit and without duplicates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

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
