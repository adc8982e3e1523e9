"""IntOrString values: a count or a percentage, such as `2` or `"25%"`."""

from __future__ import annotations


def resolve(value: int | str | None, total: int, *, round_up: bool) -> int:
    """The count, scaled from `total` if it is a percentage. Zero if it cannot be parsed."""
    if isinstance(value, int):
        return max(value, 0)
    if not value or not value.endswith("%") or not value[:-1].isdecimal():
        return 0
    share = int(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100
