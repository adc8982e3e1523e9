"""Binding conditions of devices and of what was allocated from them (KEP-5007)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.validation.fields import FieldError, FieldPath, invalid
from allot.validation.lists import duplicates, validate_items
from allot.validation.names import validate_label_key

MAX_BINDING_CONDITIONS: Final = 4
_CONDITIONS: Final = "bindingConditions"
_FAILURES: Final = "bindingFailureConditions"


def validate_binding_conditions(
    conditions: tuple[str, ...],
    failures: tuple[str, ...],
    path: FieldPath,
    *,
    one_kind_is_enough: bool,
) -> Iterator[FieldError]:
    """Each condition in only one of the lists; both lists or none, unless `one_kind_is_enough`."""
    for names, list_path in ((conditions, path / _CONDITIONS), (failures, path / _FAILURES)):
        yield from validate_items(names, list_path, MAX_BINDING_CONDITIONS, validate_label_key)
        yield from duplicates(names, list_path, lambda name: name, declared=False)
    for index, name in enumerate(failures):
        if name in conditions:
            yield invalid(
                path / _FAILURES @ index,
                name,
                f"{_FAILURES} must not overlap with {_CONDITIONS}",
            )
    if one_kind_is_enough:
        return
    if conditions and not failures:
        yield invalid(path / _FAILURES, None, f"{_FAILURES} are required to use {_CONDITIONS}")
    if failures and not conditions:
        yield invalid(path / _CONDITIONS, None, f"{_CONDITIONS} are required to use {_FAILURES}")
