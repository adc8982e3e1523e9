"""Taints and tolerations, of nodes and of devices: which toleration covers which taint.

Node taints also know the comparison operators Gt and Lt; device taints (KEP-5055) do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from allot.api.selectors import read_integer

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"


class AnyTaint(Protocol):
    """A taint of a node or of a device."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class AnyToleration(Protocol):
    """A toleration of a pod or of a device request. Empty fields match everything."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


AnyTaintT = TypeVar("AnyTaintT", bound=AnyTaint)


class Taint(NamedTuple):
    """A taint of a node: keeps pods that do not tolerate it away, or evicts them."""

    key: str
    value: str
    effect: str


class Toleration(NamedTuple):
    """Which node taints a pod tolerates."""

    key: str
    operator: str
    value: str
    effect: str


def tolerates(
    toleration: AnyToleration, taint: AnyTaint, *, comparison_operators: bool = True
) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt" if comparison_operators:
            value, bound = read_integer(taint.value), read_integer(toleration.value)
            if value is None or bound is None:
                return False
            return value > bound if toleration.operator == "Gt" else value < bound
    return False


def is_tolerated(
    taint: AnyTaint, tolerations: Iterable[AnyToleration], *, comparison_operators: bool = True
) -> bool:
    for toleration in tolerations:
        if tolerates(toleration, taint, comparison_operators=comparison_operators):
            return True
    return False


def first_untolerated(
    taints: Iterable[AnyTaintT],
    tolerations: tuple[AnyToleration, ...],
    *,
    comparison_operators: bool = True,
) -> AnyTaintT | None:
    """The first of these taints that no toleration covers."""
    for taint in taints:
        if not is_tolerated(taint, tolerations, comparison_operators=comparison_operators):
            return taint
    return None


def read_taints(raw: Iterable[Mapping[str, Any]]) -> tuple[Taint, ...]:
    """The taints of a node, as decoded JSON."""
    return tuple(
        Taint(each.get("key") or "", each.get("value") or "", each.get("effect") or "")
        for each in raw
    )


def read_tolerations(raw: Iterable[Mapping[str, Any]]) -> tuple[Toleration, ...]:
    """The tolerations of a pod, as decoded JSON."""
    return tuple(
        Toleration(
            each.get("key") or "",
            each.get("operator") or "",
            each.get("value") or "",
            each.get("effect") or "",
        )
        for each in raw
    )
