"""Field sets written under an older schema, with parts of values that are atomic now."""

from __future__ import annotations

from allot.apiserver.managed_fields.field_sets import SELF, FieldSet
from allot.apiserver.managed_fields.value_types import ANYTHING, ValueType


def reconciled(type_: ValueType, fields: FieldSet) -> FieldSet:
    """The set with atomic values in place of their parts; the same set if nothing changes."""
    if type_ is ANYTHING or not fields:
        return fields
    changed: FieldSet | None = None
    for element, node in fields.items():
        if not node or element == SELF:
            continue
        below = _below(type_, element)
        if below is None or below is ANYTHING:
            continue
        new = {} if _is_atomic(below) else reconciled(below, node)
        if new is not node:
            changed = changed if changed is not None else dict(fields)
            changed[element] = new
    return fields if changed is None else changed


def _below(type_: ValueType, element: str) -> ValueType | None:
    kind, _, name = element.partition(":")
    if kind == "f":
        return None if type_.map is None else type_.map.fields.get(name) or type_.map.element
    return None if type_.list is None else type_.list.element


def _is_atomic(type_: ValueType) -> bool:
    if type_.map is not None:
        return type_.map.atomic
    return type_.list is not None and not type_.list.associative
