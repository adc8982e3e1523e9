"""How drivers publish a capacity or attribute that a claim spells differently.

Names of capacities are compared literally, names of attributes in constraints are fully qualified. A message that
nothing matches suggests the published spelling.
"""

from __future__ import annotations

from collections.abc import Iterable

from allot.api.slices import ResourceSlice


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


def qualified_attribute_names(name: str, slices: Iterable[ResourceSlice]) -> tuple[str, ...]:
    """The fully qualified names that a name without a domain may mean, as slices publish them.

    A name without a domain is in the domain of the driver that publishes it.
    """
    found: dict[str, None] = {}
    for slice_ in slices:
        for device in slice_.spec.devices or ():
            for published in device.attributes:
                _, slash, identifier = published.rpartition("/")
                if identifier == name:
                    found[published if slash else f"{slice_.spec.driver}/{identifier}"] = None
    return tuple(sorted(found))
