"""Quotas: whether a write fits, and what is used.

A quota is in force once somebody has counted what is used: `status.hard` says of what. From then on whoever
lets a write pass adds to `status.used`; whoever counts from scratch corrects it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from allot.api.core import ResourceQuota
from allot.api.quantity import Quantity
from allot.quota.amounts import NONE, Amounts, add, as_json, growth, listed, only, read_amounts
from allot.quota.counters import Counter


class Scope(NamedTuple):
    """A restriction of a quota to some objects."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()


class Excess(NamedTuple):
    """An entry of a quota that a write would exceed."""

    name: str
    requested: Quantity
    used: Quantity
    hard: Quantity


class Exceeded(NamedTuple):
    """The write is refused, with this text."""

    message: str
    quota: str = ""
    excess: tuple[Excess, ...] = ()
    """Empty if what is used is not known, or the object does not say enough."""


def scopes_of(quota: ResourceQuota) -> Iterator[Scope]:
    """All of them must hold."""
    for name in quota.get("spec", "scopes", default=[]):
        yield Scope(name)
    for requirement in quota.get("spec", "scopeSelector", "matchExpressions", default=[]):
        yield Scope(
            requirement.get("scopeName", ""),
            requirement.get("operator", "Exists"),
            tuple(requirement.get("values") or ()),
        )


def is_about(quota: ResourceQuota, counter: Counter, obj: Any) -> bool:
    return all(counter.in_scope(obj, *scope) for scope in scopes_of(quota))


def is_in_force(quota: ResourceQuota) -> bool:
    return bool(quota.get("status", "hard"))


# --- enforcing ---


def charge(
    quotas: Iterable[ResourceQuota], counter: Counter, new: Any, old: Any = None
) -> list[ResourceQuota] | Exceeded:
    """The quotas with what a write uses of them, or why it is refused. `old` is None for a new object."""
    charged: list[ResourceQuota] = []
    more: Amounts | None = None
    for quota in sorted(quotas, key=lambda quota: quota.metadata.name):
        hard = read_amounts(quota.get("status", "hard"))
        names = counter.names(hard)
        if not names or not is_about(quota, counter, new):
            continue
        unsaid = counter.unsaid(new, names) if old is None else ""
        if unsaid:
            return Exceeded(f"failed quota: {quota.metadata.name}: {unsaid}")
        if more is None:
            more = growth(counter.usage(new), counter.usage(old) if old is not None else {})
        requested = only(more, names)
        if not requested:
            continue
        used = read_amounts(quota.get("status", "used"))
        unknown = sorted(name for name in requested if name not in used)
        if unknown:
            return Exceeded(
                f"status unknown for quota: {quota.metadata.name}, resources: {','.join(unknown)}"
            )
        exceeded = [name for name, amount in requested.items() if used[name] + amount > hard[name]]
        if exceeded:
            return Exceeded(
                f"exceeded quota: {quota.metadata.name}, requested: {listed(requested, exceeded)}, "
                f"used: {listed(used, exceeded)}, limited: {listed(hard, exceeded)}",
                quota.metadata.name,
                tuple(
                    Excess(name, requested[name], used[name], hard[name])
                    for name in sorted(exceeded)
                ),
            )
        add(used, requested)
        charged.append(quota.with_value(as_json(used), "status", "used"))
    return charged


# --- counting ---


def total_usage(quota: ResourceQuota, counter: Counter, objects: Iterable[Any]) -> Amounts:
    """What these objects of one resource use of the quota: zero where they use nothing."""
    names = counter.names(quota.hard)
    total: Amounts = dict.fromkeys(names, NONE)
    for obj in objects:
        if is_about(quota, counter, obj):
            add(total, only(counter.usage(obj), total))
    return total


def with_usage(quota: ResourceQuota, used: Mapping[str, Any]) -> ResourceQuota:
    """The quota with what is used of what it limits now; itself if it says so already."""
    hard = quota.hard
    counted = only(used, hard)
    if read_amounts(quota.get("status", "hard")) == hard and quota.used == counted:
        return quota
    status = {
        **quota.get("status", default={}),
        "hard": as_json(hard),
        "used": as_json(counted),
    }
    return quota.with_value(status, "status")
