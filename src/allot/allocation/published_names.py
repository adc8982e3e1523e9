"""How drivers publish a capacity that a claim spells differently.

Names of capacities are compared literally. A message that a device has no such capacity suggests the published spelling.
"""

from __future__ import annotations

from collections.abc import Iterable


def published_capacity_name(requested: str, driver: str, published: Iterable[str]) -> str:
    """How a device of `driver` spells the requested capacity; empty if it has no similar one."""
    wanted = _bare(requested, driver).casefold()
    found = [name for name in published if name != requested]
    for name in found:
        if _bare(name, driver).casefold() == wanted:
            return name
    identifier = requested.rpartition("/")[2].casefold()
    return next((name for name in found if name.rpartition("/")[2].casefold() == identifier), "")


def _bare(name: str, driver: str) -> str:
    return name.removeprefix(f"{driver}/")
