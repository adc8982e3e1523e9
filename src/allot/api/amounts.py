"""Amounts by resource name, as quantities or plain integers: sums, and the peak of a pod's containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from allot.api.quantity import Quantity

Amount = TypeVar("Amount", int, Quantity)


def add(into: dict[str, Amount], more: Mapping[str, Amount]) -> None:
    """Add amounts to a sum."""
    for name, amount in more.items():
        into[name] = into[name] + amount if name in into else amount


def raise_to(into: dict[str, Amount], floor: Mapping[str, Amount]) -> None:
    """Raise amounts to at least these; zero counts as an amount."""
    for name, amount in floor.items():
        if name not in into or amount > into[name]:
            into[name] = amount


def is_sidecar(init_container: Mapping[str, Any]) -> bool:
    """Whether an init container keeps running beside the containers."""
    return init_container.get("restartPolicy") == "Always"


def peak_of_containers(
    containers: Iterable[Mapping[str, Amount]],
    init_containers: Iterable[tuple[bool, Mapping[str, Amount]]],
) -> dict[str, Amount]:
    """The largest amounts at any time. Init containers say whether they are sidecars.

    Containers and sidecars run together; each init container runs beside the sidecars before it. Amounts are not
    negative: what an init container does not ask for is never more than that of all sidecars, which are in the total.
    """
    total: dict[str, Amount] = {}
    for amounts in containers:
        add(total, amounts)
    sidecars: dict[str, Amount] = {}
    peak: dict[str, Amount] = {}
    for is_beside, amounts in init_containers:
        if is_beside:
            add(total, amounts)
            add(sidecars, amounts)
        else:
            beside = {name: sidecars[name] for name in amounts if name in sidecars}
            add(beside, amounts)
            raise_to(peak, beside)
    raise_to(total, peak)
    return total
