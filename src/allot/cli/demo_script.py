"""What `allot demo` plays: stories made of scenes, scenes made of acts. Values only; `demo_stage` performs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from allot.cli.kubectl_output import values_at

NAMESPACE: Final = "allot-demo"
FABRIC_DRIVER: Final = "fabric.example.com"
HARDWARE: Final = ("gpu-server=2", "shared-nic", "fabric")
"""The cluster in which the stories work: `allot up --hardware …`. `scripts/up` starts the same."""
DEVICE_CLASSES: Final = (
    "gpu.example.com",
    "rdma.example.com",
    "shared-nic.example.com",
    FABRIC_DRIVER,
)
"""What that hardware brings along."""

Objects = Sequence[Mapping[str, Any]]


class Sight(NamedTuple):
    """What must be so before it is worth looking."""

    description: str
    is_there: Callable[[Objects], bool]


class Apply(NamedTuple):
    """`kubectl apply -f`. With `renews` an object of that name is deleted before."""

    path: str
    renews: bool = False


class Delete(NamedTuple):
    """`kubectl delete -f`."""

    path: str


@dataclass(frozen=True)
class Look:
    """`kubectl get`, once there is something to see. Without columns, the server's own table."""

    plural: str
    until: Sight
    columns: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    selector: str = ""
    is_wide: bool = False


class StartFabric(NamedTuple):
    """`allot binding-controller` with a script."""

    script: str


class StopFabric(NamedTuple):
    """The end of it."""


Act = Apply | Delete | Look | StartFabric | StopFabric


class Scene(NamedTuple):
    """What is said, then what is done, then what to make of it; and in the end, who leaves the stage."""

    before: str
    acts: tuple[Act, ...]
    after: str = ""
    exits: tuple[Act, ...] = ()


class Story(NamedTuple):
    """A KEP in a few scenes."""

    kep: str
    title: str
    scenes: tuple[Scene, ...]


# --- what to wait for ---


def present(count: int = 1) -> Sight:
    return Sight(f"{count} objects", lambda objects: len(objects) >= count)


def allocated(count: int) -> Sight:
    return Sight(
        f"{count} allocated claims",
        lambda claims: sum(bool(values_at(each, ".status.allocation")) for each in claims) >= count,
    )


def phases(**wanted: int) -> Sight:
    """So many pods in each phase; those that are Pending must have been tried."""
    tried = '.status.conditions[?(@.type=="PodScheduled")].status'

    def is_there(pods: Objects) -> bool:
        found = [phase for pod in pods for phase in values_at(pod, ".status.phase")]
        return all(found.count(phase) >= count for phase, count in wanted.items()) and all(
            values_at(pod, tried) for pod in pods
        )

    return Sight(", ".join(f"{count} pods {phase}" for phase, count in wanted.items()), is_there)


def nominated(count: int) -> Sight:
    """So many pods that have a node, or one in prospect."""
    return Sight(
        f"{count} pods with a node",
        lambda pods: (
            sum(
                any(
                    values_at(pod, path) for path in (".spec.nodeName", ".status.nominatedNodeName")
                )
                for pod in pods
            )
            >= count
        ),
    )


def condition(type_: str) -> Sight:
    path = f'.status.conditions[?(@.type=="{type_}")].status'
    return Sight(
        f"the condition {type_}",
        lambda objects: bool(objects) and all("True" in values_at(each, path) for each in objects),
    )


# --- what to look at ---

_RESULTS: Final = ".status.allocation.devices.results[*]"
PODS: Final = {"POD": ".metadata.name", "NODE": ".spec.nodeName", "PHASE": ".status.phase"}
ALTERNATIVES: Final = {
    "CLAIM": ".metadata.name",
    "GOT": ".status.allocation.devices.results[0].request",
    "DEVICES": f"{_RESULTS}.device",
}
SHARES: Final = {
    "CLAIM": ".metadata.name",
    "DEVICE": f"{_RESULTS}.device",
    "BANDWIDTH": f"{_RESULTS}.consumedCapacity.bandwidth",
    "FUNCTIONS": f"{_RESULTS}.consumedCapacity.virtualFunctions",
}
CONDITIONS: Final = {
    "CLAIM": ".metadata.name",
    "DEVICE": f"{_RESULTS}.device",
    "CONDITION": ".status.devices[*].conditions[*].type",
    "STATUS": ".status.devices[*].conditions[*].status",
}
TAINTS: Final = {
    "RULE": ".metadata.name",
    "DEVICE": ".spec.deviceSelector.device",
    "TAINT": ".spec.taint.key",
    "EFFECT": ".spec.taint.effect",
}
POOLS: Final = {
    "POOLS": ".status.pools[*].poolName",
    "TOTAL": ".status.pools[*].totalDevices",
    "ALLOCATED": ".status.pools[*].allocatedDevices",
    "AVAILABLE": ".status.pools[*].availableDevices",
}
DEVICES: Final = {
    "CLAIM": ".metadata.name",
    "REQUESTS": f"{_RESULTS}.request",
    "DEVICES": f"{_RESULTS}.device",
}
