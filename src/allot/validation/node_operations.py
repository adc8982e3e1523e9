"""Node operations that a driver skips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.validation.fields import FieldError, FieldPath, invalid, not_supported
from allot.validation.lists import duplicates

PREPARE: Final = "NodePrepareResources"
UNPREPARE: Final = "NodeUnprepareResources"
EVERY: Final = "*"
OPERATIONS: Final = (EVERY, PREPARE, UNPREPARE)


def validate_skipped_operations(
    operations: tuple[str, ...], path: FieldPath
) -> Iterator[FieldError]:
    """A set of operations. Preparing may be skipped only together with unpreparing."""
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            yield not_supported(path @ index, operation, OPERATIONS, declared=True)
    yield from duplicates(operations, path, lambda operation: operation)
    if PREPARE in operations and UNPREPARE not in operations and EVERY not in operations:
        yield invalid(
            path, operations, f"{PREPARE} cannot be skipped unless {UNPREPARE} is also skipped"
        )
