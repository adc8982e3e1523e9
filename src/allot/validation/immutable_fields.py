"""Fields that an update leaves as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from allot.api.raw import RawObject
from allot.validation.fields import FieldError, FieldPath, invalid
from allot.validation.metadata import IMMUTABLE

Update = Callable[[RawObject, RawObject], Iterator[FieldError]]


def unchanged(*path: str) -> Update:
    """A rule for updates: the value at this path stays as it was."""
    field = FieldPath(path[0])
    for name in path[1:]:
        field = field / name

    def validate(new: RawObject, old: RawObject) -> Iterator[FieldError]:
        if new.get(*path) != old.get(*path):
            yield invalid(field, new.get(*path), IMMUTABLE)

    return validate
