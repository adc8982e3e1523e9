"""Decides the changes of a write: operations and current entries in, changes or a conflict out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

from allot.storage.interface import (
    MISSING,
    Change,
    Delete,
    Entry,
    Operation,
    Put,
    RevisionConflictError,
    StorageError,
)

_key_of: Final = attrgetter("key")

Batch: TypeAlias = tuple[Change, ...]
"""The changes of one revision; never empty."""


def check_form(operations: Sequence[Operation]) -> None:
    """Reject invalid operations, independent of the store's contents."""
    keys = set(map(_key_of, operations))
    if len(keys) < len(operations):
        raise StorageError("a key occurs twice in one write")
    if "" in keys or not "".join(keys).isascii():
        for operation in operations:
            if not is_key(operation.key):
                raise StorageError(f"{operation.key!r} is not a valid key")


def is_key(text: str) -> bool:
    """Whether it is a valid key: a non-empty string without surrogates."""
    if text.isascii():
        return bool(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def decide_changes(
    operations: Sequence[Operation], current: Callable[[str], Entry | None], revision: int
) -> Batch:
    """The changes of `operations` at `revision`; empty if nothing changes. Raises `RevisionConflictError`."""
    changes = []
    for operation in operations:
        key, expected = operation.key, operation.expected
        previous = current(key)
        if expected is not None:
            actual = MISSING if previous is None else previous.revision
            if expected != actual:
                raise RevisionConflictError(key, expected, actual)
        if type(operation) is Put:
            created = revision if previous is None else previous.created
            entry = Entry(key, operation.value, revision, created)
            changes.append(Change(revision, key, entry, previous))
        elif type(operation) is Delete and previous is not None:
            changes.append(Change(revision, key, None, previous))
    return tuple(changes)


def end_of_prefix(prefix: str) -> str | None:
    """The first string after all that start with `prefix`; None if no string is greater."""
    for last in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[last]) + 1
        if following == 0xD800:  # surrogates are no characters: no key has them
            following = 0xE000
        if following <= 0x10FFFF:
            return prefix[:last] + chr(following)
    return None
