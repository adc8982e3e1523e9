"""Taints of nodes and the tolerations of pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from allot.scheduler.state.selectors import read_integer

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"


class Taint(NamedTuple):
    """Why pods should stay away from a node."""

    key: str
    value: str
    effect: str


class Toleration(NamedTuple):
    """Taints a pod does not mind. Empty fields match everything."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "" | "Equal":
                return self.value == taint.value
            case "Exists":
                return True
            case "Gt" | "Lt":
                have, limit = read_integer(taint.value), read_integer(self.value)
                if have is None or limit is None:
                    return False
                return have > limit if self.operator == "Gt" else have < limit
        return False


def read_taints(raw: Iterable[Mapping[str, Any]]) -> tuple[Taint, ...]:
    return tuple(
        Taint(one.get("key") or "", one.get("value") or "", one.get("effect") or "") for one in raw
    )


def read_tolerations(raw: Iterable[Mapping[str, Any]]) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(
            one.get("key") or "",
            one.get("operator") or "",
            one.get("value") or "",
            one.get("effect") or "",
        )
        for one in raw
    )


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)


def first_untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """The first of these taints that none of the tolerations covers."""
    for taint in taints:
        if not is_tolerated(taint, tolerations):
            return taint
    return None
