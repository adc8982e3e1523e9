"""Amounts of node resources as plain integers, and what a pod requests of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from allot.api.amounts import add, is_sidecar, peak_of_containers, raise_to
from allot.api.quantity import PARSED, Quantity, QuantityError, quantity_from_json

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

DEFAULT_MILLI_CPU: Final = 100
"""The CPU request that scoring assumes for a container without one."""
DEFAULT_MEMORY: Final = 200 * 1024 * 1024

Amounts = dict[str, int]
"""Amounts by resource name: thousandths for cpu, whole units for everything else."""


class Resources(NamedTuple):
    """Amounts of resources. Cpu is in thousandths; `scalars` are sorted by name, without zeros."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    scalars: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, amounts: Mapping[str, int]) -> Resources:
        scalars = tuple(
            sorted((name, amount) for name, amount in amounts.items() if amount and is_scalar(name))
        )
        return cls(
            amounts.get(CPU, 0), amounts.get(MEMORY, 0), amounts.get(EPHEMERAL_STORAGE, 0), scalars
        )

    def amount(self, name: str) -> int:
        if name == CPU:
            return self.milli_cpu
        if name == MEMORY:
            return self.memory
        if name == EPHEMERAL_STORAGE:
            return self.ephemeral_storage
        return next((amount for known, amount in self.scalars if known == name), 0)

    def exceeds(self, other: Resources) -> bool:
        """Whether any amount is larger here than in `other`."""
        return (
            self.milli_cpu > other.milli_cpu
            or self.memory > other.memory
            or self.ephemeral_storage > other.ephemeral_storage
            or any(amount > other.amount(name) for name, amount in self.scalars)
        )


def amount_of(name: str, amount: int) -> Quantity:
    """An amount of a resource as a quantity."""
    if name == CPU:
        return Quantity.parse(f"{amount}m") if amount % 1000 else Quantity.of(amount // 1000)
    return Quantity.of(amount, "BinarySI" if name in (MEMORY, EPHEMERAL_STORAGE) else "DecimalSI")


def is_scalar(name: str) -> bool:
    """Whether a resource is counted by name: extended resources, huge pages, attachable volumes."""
    return ("/" in name and not name.startswith("requests.")) or name.startswith(
        ("hugepages-", "attachable-volumes-")
    )


def read_amounts(raw: Mapping[str, Any] | None) -> Amounts:
    """The amounts in a resource list of the API. Invalid quantities count as zero."""
    amounts: Amounts = {}
    for name, value in (raw or {}).items():
        try:
            quantity = PARSED.get(value) or quantity_from_json(value)
        except (QuantityError, TypeError):
            continue
        amounts[name] = quantity.milli_value() if name == CPU else quantity.value()
    return amounts


class PodRequests(NamedTuple):
    """The requests of a pod, and those that scoring assumes."""

    requests: Resources
    nonzero_milli_cpu: int
    nonzero_memory: int


def read_pod_requests(spec: Mapping[str, Any], status: Mapping[str, Any]) -> PodRequests:
    """The largest requests of the pod at any time.

    Containers and sidecars run together; each init container runs beside the sidecars before it.
    Requests of the pod as a whole replace the sum for the resources they name. Overhead comes on
    top. While a running pod is being resized, the larger of old and new counts.
    """
    containers = spec.get("containers") or ()
    inits = spec.get("initContainers") or ()
    actual = _actual_requests(status)
    resize_refused = _resize_is_infeasible(status)
    exact = [_requests_of(container, actual, resize_refused) for container in containers]
    exact_inits = [
        (is_sidecar(container), _requests_of(container, actual, resize_refused))
        for container in inits
    ]

    total = peak_of_containers(exact, exact_inits)
    nonzero = peak_of_containers(
        [_with_defaults(amounts) for amounts in exact],
        [(sidecar, _with_defaults(amounts)) for sidecar, amounts in exact_inits],
    )
    whole_pod = read_amounts((spec.get("resources") or {}).get("requests"))
    for name, amount in whole_pod.items():
        if name in (CPU, MEMORY) or name.startswith("hugepages-"):
            total[name] = nonzero[name] = amount
    overhead = read_amounts(spec.get("overhead"))
    add(total, overhead)
    add(nonzero, overhead)
    return PodRequests(Resources.of(total), nonzero.get(CPU, 0), nonzero.get(MEMORY, 0))


def _with_defaults(amounts: Amounts) -> Amounts:
    if CPU in amounts and MEMORY in amounts:
        return amounts
    return {CPU: DEFAULT_MILLI_CPU, MEMORY: DEFAULT_MEMORY} | amounts


def _requests_of(
    container: Mapping[str, Any], actual: Mapping[str, Amounts], resize_refused: bool
) -> Amounts:
    wanted = read_amounts((container.get("resources") or {}).get("requests"))
    held = actual.get(container.get("name", ""))
    if held is None:
        return wanted
    if resize_refused:
        return held
    raise_to(wanted, held)
    return wanted


def _actual_requests(status: Mapping[str, Any]) -> dict[str, Amounts]:
    """The allocated resources in the status, by container name."""
    held: dict[str, Amounts] = {}
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(field) or ():
            allocated = container.get("allocatedResources")
            running = (container.get("resources") or {}).get("requests")
            if allocated or running:
                amounts = read_amounts(allocated)
                raise_to(amounts, read_amounts(running))
                held[container.get("name", "")] = amounts
    return held


def _resize_is_infeasible(status: Mapping[str, Any]) -> bool:
    return any(
        condition.get("type") == "PodResizePending" and condition.get("reason") == "Infeasible"
        for condition in status.get("conditions") or ()
    )
