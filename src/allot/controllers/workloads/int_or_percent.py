"""Numbers that users give as a count or as a percentage: `2`, `"25%"`."""

from __future__ import annotations


def resolve(value: int | str | None, total: int, *, round_up: bool) -> int:
    """The count that is meant, of `total`. What cannot be read is zero."""
    if isinstance(value, int):
        return max(value, 0)
    if not value or not value.endswith("%") or not value[:-1].isdecimal():
        return 0
    share = int(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100
