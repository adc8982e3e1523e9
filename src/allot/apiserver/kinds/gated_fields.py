"""Fields behind feature gates, as tables.

While a gate is off, its fields are dropped from what clients send, unless the stored object uses the feature already:
then they stay, so that switching a gate off loses nothing. A new gated field is a row in the table of its kind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from allot.features import FeatureGates

Part = TypeVar("Part")
"""What fields are dropped from, such as a spec."""
Stored = TypeVar("Stored")
"""What tells whether a feature is in use: the same part of the stored object, or more of it."""


def _perhaps(_: object) -> bool:
    return True


class GatedFields(NamedTuple, Generic[Part, Stored]):
    """The fields of one feature."""

    gates: tuple[str, ...]
    """The gates that must all be on."""
    is_used: Callable[[Stored], bool]
    """Whether the stored object uses the feature."""
    without: Callable[[Part], Part]
    """The part without the fields."""
    is_present: Callable[[Part], bool] = _perhaps
    """Whether there is anything to drop."""
    rejected_by: str = ""
    """The rule under which validation rejects the fields, so that they are not dropped."""

    def is_enabled(self, gates: FeatureGates) -> bool:
        for gate in self.gates:
            if gate not in gates:
                return self.rejected_by in gates
        return True


def drop_disabled_fields(
    part: Part,
    stored: Stored | None,
    gates: FeatureGates,
    table: tuple[GatedFields[Part, Stored], ...],
) -> Part:
    """`part` without the fields whose gate is off; `stored` is None on create."""
    for fields in _disabled(table, gates):
        if fields.is_present(part) and (stored is None or not fields.is_used(stored)):
            part = fields.without(part)
    return part


@lru_cache(64)
def _disabled(
    table: tuple[GatedFields[Any, Any], ...], gates: FeatureGates
) -> tuple[GatedFields[Any, Any], ...]:
    """The rows of a table whose gate is off: a server has the same gates for all requests."""
    return tuple(fields for fields in table if not fields.is_enabled(gates))
