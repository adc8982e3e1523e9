"""Quota decisions: whether a write fits, and the usage after it.

A quota is enforced once its usage has been counted: `status.hard` lists the entries. From then on admission adds
to `status.used`, and the controller corrects it by a full recount.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from allot.api.amounts import add
from allot.api.core import ResourceQuota
from allot.api.quantity import Quantity
from allot.quota.amounts import NONE, Amounts, as_json, growth, listed, only, read_amounts
from allot.quota.evaluators import Evaluator


class QuotaScope(NamedTuple):
    """A scope of a quota: which objects it covers."""

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
    """The write is refused, with this message."""

    message: str
    quota: str = ""
    excess: tuple[Excess, ...] = ()
    """Empty if the usage is unknown, or the object lacks requests or limits."""


def scopes_of(quota: ResourceQuota) -> Iterator[QuotaScope]:
    """All scopes of the quota; an object must match each of them."""
    for name in quota.get("spec", "scopes", default=[]):
        yield QuotaScope(name)
    for requirement in quota.get("spec", "scopeSelector", "matchExpressions", default=[]):
        yield QuotaScope(
            requirement.get("scopeName", ""),
            requirement.get("operator", "Exists"),
            tuple(requirement.get("values") or ()),
        )


def covers(quota: ResourceQuota, evaluator: Evaluator, obj: Any) -> bool:
    scopes = dict.fromkeys(scopes_of(quota))
    return all(evaluator.matches_scope(obj, *scope) for scope in scopes)


def is_in_force(quota: ResourceQuota) -> bool:
    return bool(quota.get("status", "hard"))


# --- enforcing ---


class Charge:
    """A write that is charged to one quota after the other. `old` is None for a new object.

    Of a quota only the entries are read that the write counts towards: a namespace may have many quotas with many
    entries.
    """

    def __init__(self, evaluator: Evaluator, new: Any, old: Any = None) -> None:
        self._evaluator = evaluator
        self._new = new
        self._more = growth(evaluator.usage(new), evaluator.usage(old) if old is not None else {})
        self._required = evaluator.required if old is None else frozenset()
        self._missing: dict[frozenset[str], str] = {}
        self._scopes: dict[QuotaScope, bool] = {}

    def to(self, quota: ResourceQuota) -> ResourceQuota | Exceeded | None:
        """The quota with the usage added, or why the write is refused; None if the quota does not limit it."""
        limits = quota.get("status", "hard", default={})
        entries = [name for name in (self._more.keys() | self._required) if name in limits]
        entries = self._evaluator.names(entries)
        if not entries or not all(map(self._is_in, scopes_of(quota))):
            return None
        hard = read_amounts({name: limits[name] for name in entries})
        missing_amounts = self._missing_amounts(self._required.intersection(hard))
        if missing_amounts:
            return Exceeded(f"failed quota: {quota.metadata.name}: {missing_amounts}")
        requested = only(self._more, hard)
        if not requested:
            return None
        counted = quota.get("status", "used", default={})
        used = read_amounts(only(counted, requested))
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
        return quota.with_value({**counted, **as_json(used)}, "status", "used")

    def _is_in(self, scope: QuotaScope) -> bool:
        """Whether the object matches a scope; looked at once, as quotas may have thousands of equal ones."""
        if scope not in self._scopes:
            self._scopes[scope] = self._evaluator.matches_scope(self._new, *scope)
        return self._scopes[scope]

    def _missing_amounts(self, names: frozenset[str]) -> str:
        if not names:
            return ""
        if names not in self._missing:
            self._missing[names] = self._evaluator.missing_amounts(self._new, names)
        return self._missing[names]


def charge(
    quotas: Iterable[ResourceQuota], evaluator: Evaluator, new: Any, old: Any = None
) -> list[ResourceQuota] | Exceeded:
    """The quotas with the usage of a write added, or why it is refused. `old` is None for a new object."""
    write = Charge(evaluator, new, old)
    charged: list[ResourceQuota] = []
    for quota in sorted(quotas, key=lambda quota: quota.metadata.name):
        outcome = write.to(quota)
        if isinstance(outcome, Exceeded):
            return outcome
        if outcome is not None:
            charged.append(outcome)
    return charged


# --- counting ---


def total_usage(quota: ResourceQuota, evaluator: Evaluator, objects: Iterable[Any]) -> Amounts:
    """The usage of these objects of one resource, by entry; zero without usage."""
    names = evaluator.names(quota.hard)
    total: Amounts = dict.fromkeys(names, NONE)
    for obj in objects:
        if covers(quota, evaluator, obj):
            add(total, only(evaluator.usage(obj), total))
    return total


def with_usage(quota: ResourceQuota, used: Mapping[str, Any]) -> ResourceQuota:
    """The quota with this usage in its status; itself if nothing changes."""
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
