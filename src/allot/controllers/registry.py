"""All controllers by name, and the choice that `--controllers` makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from allot.controllers.controller import Controller
from allot.controllers.device_taint_eviction import DeviceTaintEvictionController
from allot.controllers.garbage_collector import GarbageCollector
from allot.controllers.manager import Factory
from allot.controllers.namespace_objects import (
    RootCaPublisher,
    ServiceAccountController,
)
from allot.controllers.namespaces import NamespaceController
from allot.controllers.node_lifecycle import NodeLifecycleController
from allot.controllers.pod_garbage_collection import PodGarbageCollector
from allot.controllers.pool_status import ResourcePoolStatusRequestController
from allot.controllers.resource_claims import ResourceClaimController
from allot.controllers.resource_quota import ResourceQuotaController
from allot.controllers.taint_eviction import TaintEvictionController
from allot.controllers.ttl_after_finished import TtlAfterFinishedController
from allot.controllers.workloads.daemon_set import DaemonSetController
from allot.controllers.workloads.deployment import DeploymentController
from allot.controllers.workloads.job import JobController
from allot.controllers.workloads.replica_set import ReplicaSetController
from allot.controllers.workloads.stateful_set import StatefulSetController

_CLASSES: Final[tuple[type[Controller], ...]] = (
    ResourceClaimController,
    ResourcePoolStatusRequestController,
    DeviceTaintEvictionController,
    GarbageCollector,
    NamespaceController,
    ResourceQuotaController,
    ServiceAccountController,
    RootCaPublisher,
    TtlAfterFinishedController,
    NodeLifecycleController,
    TaintEvictionController,
    PodGarbageCollector,
    ReplicaSetController,
    DeploymentController,
    StatefulSetController,
    DaemonSetController,
    JobController,
)
CONTROLLERS: Final[dict[str, Factory]] = {each.name: each for each in _CLASSES}
ON_REQUEST: Final = frozenset({RootCaPublisher.name})
"""Those that `*` leaves out: the pods of simulated nodes talk to no server, and Kubernetes' own manager does it elsewhere."""
_ALIASES: Final = {"resource-claim-controller": "resourceclaim-controller"}
ALL: Final = "*"


class UnknownControllerError(ValueError):
    """There is no controller of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no controller {name!r}; there are {', '.join(CONTROLLERS)}")


def chosen(
    choice: Iterable[str], others: Mapping[str, Factory] = MappingProxyType({})
) -> tuple[Factory, ...]:
    """`*` is all but those on request, `NAME` one more, `-NAME` one less, as for kube-controller-manager.

    `others` are made instead of those that have their names here.
    """
    wanted: set[str] = set()
    unwanted: set[str] = set()
    for text in choice:
        if text == ALL:
            wanted.update(CONTROLLERS.keys() - ON_REQUEST)
            continue
        name = text.removeprefix("-")
        name = _ALIASES.get(name, name)
        if name not in CONTROLLERS:
            raise UnknownControllerError(name)
        (unwanted if text.startswith("-") else wanted).add(name)
    made = {**CONTROLLERS, **others}
    return tuple(make for name, make in made.items() if name in wanted - unwanted)
