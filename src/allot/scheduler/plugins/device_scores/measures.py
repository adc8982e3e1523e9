"""Measures of a node's devices, as numbers to rank nodes by."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from allot.scheduler.plugins.device_scores.device_usage import NodeUsage, Unit, UnitUsage

Moment = Callable[[Unit], UnitUsage]


def before(unit: Unit) -> UnitUsage:
    return unit.before


def after(unit: Unit) -> UnitUsage:
    return unit.after


def utilisation(usage: NodeUsage, moment: Moment = after) -> float:
    """The used share of the devices of the drivers that the pod needs, from 0 to 1."""
    units = [unit for unit in usage.units if unit.driver in usage.drivers]
    return sum(moment(unit).used for unit in units) / len(units) if units else 0.0


def lost_room(usage: NodeUsage) -> float:
    """How much room for large requests is lost.

    Room is counted in blocks: each unit, each group of units with a common attribute, and the machine. A block of n
    units with k of them free is worth k²/n: what is left of a block that is broken up is worth less than its share, so
    that the least is lost where blocks are broken up already, or taken whole.
    """
    return _room(usage, before) - _room(usage, after)


def _room(usage: NodeUsage, moment: Moment) -> float:
    by_driver: dict[str, list[float]] = {}
    by_group: dict[object, list[float]] = {}
    room = 0.0
    for unit in usage.units:
        free = 1.0 - moment(unit).used
        room += free * free
        by_driver.setdefault(unit.driver, []).append(free)
        for group in unit.groups:
            by_group.setdefault(group, []).append(free)
    return room + sum(map(_block, (*by_driver.values(), *by_group.values())))


def _block(free: Iterable[float]) -> float:
    shares = list(free)
    return sum(shares) ** 2 / len(shares)


def stranded_devices(usage: NodeUsage, free_share: float, moment: Moment = after) -> float:
    """Free devices that cannot be used because too little is left of what they need besides, in units.

    `free_share` is the share of the node's CPU or memory that is free, whichever is less. What is left of a device
    beyond what is scarcest of it counts, too.
    """
    units = usage.units
    if not units:
        return 0.0
    free = sum(1.0 - moment(unit).used for unit in units)
    skew = sum(moment(unit).skew for unit in units)
    return max(0.0, free - free_share * len(units)) + skew
