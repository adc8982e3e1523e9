"""What a write changes: operations and the state they meet in, changes or a conflict out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from allot.storage.interface import (
    MISSING,
    Change,
    Check,
    Delete,
    Entry,
    Operation,
    Put,
    RevisionConflictError,
    StorageError,
)

Batch: TypeAlias = tuple[Change, ...]
"""The changes of one revision; never empty."""


def check_form(operations: Sequence[Operation]) -> None:
    """Refuse what no store could do, whatever it holds."""
    if len(operations) > 1 and len({operation.key for operation in operations}) < len(operations):
        raise StorageError("a key occurs twice in one write")
    for operation in operations:
        if not is_key(operation.key):
            raise StorageError(f"{operation.key!r} is not a valid key")


def is_key(text: str) -> bool:
    """Any text is, except none at all, and halves of characters."""
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
    """The changes `operations` make as `revision`, none if there are none; `RevisionConflictError`."""
    changes = []
    for operation in operations:
        key = operation.key
        previous = current(key)
        actual = MISSING if previous is None else previous.revision
        if operation.expected is not None and operation.expected != actual:
            raise RevisionConflictError(key, operation.expected, actual)
        match operation:
            case Put(_, value):
                created = revision if previous is None else previous.created
                entry = Entry(key, value, revision, created)
                changes.append(Change(revision, key, entry, previous))
            case Delete() if previous is not None:
                changes.append(Change(revision, key, None, previous))
            case Delete() | Check():
                pass
    return tuple(changes)


def end_of_prefix(prefix: str) -> str | None:
    """The first text after all that start with `prefix`; None if there is no such text."""
    for last in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[last]) + 1
        if following == 0xD800:  # surrogates are no characters: no key has them
            following = 0xE000
        if following <= 0x10FFFF:
            return prefix[:last] + chr(following)
    return None
