"""The list of all controllers, and the selection that `--controllers` makes from it.

A new controller is one module or package in `allot.controllers` and one row in `_ENTRIES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from allot.controllers.cluster_role_aggregation import ClusterRoleAggregationController
from allot.controllers.cron_jobs import CronJobController
from allot.controllers.device_taint_eviction import DeviceTaintEvictionController
from allot.controllers.disruption import DisruptionController
from allot.controllers.ephemeral_volumes import EphemeralVolumeController
from allot.controllers.garbage_collector import GarbageCollector
from allot.controllers.horizontal_pod_autoscaling import HorizontalPodAutoscalerController
from allot.controllers.manager import Factory
from allot.controllers.namespace_objects import (
    RootCaPublisher,
    ServiceAccountController,
)
from allot.controllers.namespaces import NamespaceController
from allot.controllers.node_lifecycle import NodeLifecycleController
from allot.controllers.node_ttl import TtlController
from allot.controllers.persistent_volumes import PersistentVolumeController
from allot.controllers.pod_garbage_collection import PodGarbageCollector
from allot.controllers.pool_status import ResourcePoolStatusRequestController
from allot.controllers.resource_claims import ResourceClaimController
from allot.controllers.resource_quota import ResourceQuotaController
from allot.controllers.service_cidrs import ServiceCidrController
from allot.controllers.taint_eviction import TaintEvictionController
from allot.controllers.ttl_after_finished import TtlAfterFinishedController
from allot.controllers.volume_protection import (
    PersistentVolumeClaimProtectionController,
    PersistentVolumeProtectionController,
)
from allot.controllers.workloads.daemon_set import DaemonSetController
from allot.controllers.workloads.deployment import DeploymentController
from allot.controllers.workloads.job import JobController
from allot.controllers.workloads.replica_set import ReplicaSetController
from allot.controllers.workloads.replication_controller import ReplicationControllerController
from allot.controllers.workloads.stateful_set import StatefulSetController


class ControllerEntry(NamedTuple):
    """One row of the registry."""

    name: str
    """The name that `--controllers` takes, as in kube-controller-manager."""
    factory: Factory
    alias: str = ""


_ENTRIES: Final = (
    ControllerEntry(
        "resourceclaim-controller", ResourceClaimController, alias="resource-claim-controller"
    ),
    ControllerEntry("resourcepoolstatusrequest-controller", ResourcePoolStatusRequestController),
    ControllerEntry("device-taint-eviction-controller", DeviceTaintEvictionController),
    ControllerEntry("garbage-collector-controller", GarbageCollector),
    ControllerEntry("namespace-controller", NamespaceController),
    ControllerEntry("resourcequota-controller", ResourceQuotaController),
    ControllerEntry("serviceaccount-controller", ServiceAccountController),
    ControllerEntry("root-ca-certificate-publisher-controller", RootCaPublisher),
    ControllerEntry("ttl-after-finished-controller", TtlAfterFinishedController),
    ControllerEntry("node-lifecycle-controller", NodeLifecycleController),
    ControllerEntry("ttl-controller", TtlController),
    ControllerEntry("taint-eviction-controller", TaintEvictionController),
    ControllerEntry("pod-garbage-collector-controller", PodGarbageCollector),
    ControllerEntry("replicationcontroller-controller", ReplicationControllerController),
    ControllerEntry("replicaset-controller", ReplicaSetController),
    ControllerEntry("deployment-controller", DeploymentController),
    ControllerEntry("statefulset-controller", StatefulSetController),
    ControllerEntry("daemonset-controller", DaemonSetController),
    ControllerEntry("job-controller", JobController),
    ControllerEntry("cronjob-controller", CronJobController),
    ControllerEntry("horizontal-pod-autoscaler-controller", HorizontalPodAutoscalerController),
    ControllerEntry("disruption-controller", DisruptionController),
    ControllerEntry("clusterrole-aggregation-controller", ClusterRoleAggregationController),
    ControllerEntry("service-cidr-controller", ServiceCidrController),
    ControllerEntry(
        "persistentvolume-binder-controller",
        PersistentVolumeController,
        alias="persistentvolume-binder",
    ),
    ControllerEntry(
        "ephemeral-volume-controller", EphemeralVolumeController, alias="ephemeral-volume"
    ),
    ControllerEntry(
        "persistentvolumeclaim-protection-controller",
        PersistentVolumeClaimProtectionController,
        alias="pvc-protection",
    ),
    ControllerEntry(
        "persistentvolume-protection-controller",
        PersistentVolumeProtectionController,
        alias="pv-protection",
    ),
)
CONTROLLERS: Final[Mapping[str, ControllerEntry]] = MappingProxyType(
    {entry.name: entry for entry in _ENTRIES}
)
DEFAULT_CONTROLLERS: Final = frozenset(entry.name for entry in _ENTRIES)
_NAME_BY_ALIAS: Final = {entry.alias: entry.name for entry in _ENTRIES if entry.alias}
ALL: Final = "*"
"""Stands for all controllers."""


class UnknownControllerError(ValueError):
    """No controller has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown controller {name!r}; available: {', '.join(CONTROLLERS)}")


def select_controllers(
    selection: Iterable[str], overrides: Mapping[str, Factory] = MappingProxyType({})
) -> tuple[Factory, ...]:
    """The factories for `*` (all controllers), `NAME` (add one) and `-NAME` (remove one).

    `overrides` replaces the factories of controllers by name.
    """
    selected: set[str] = set()
    removed: set[str] = set()
    for item in selection:
        if item == ALL:
            selected |= DEFAULT_CONTROLLERS
            continue
        name = item.removeprefix("-")
        name = _NAME_BY_ALIAS.get(name, name)
        if name not in CONTROLLERS:
            raise UnknownControllerError(name)
        (removed if item.startswith("-") else selected).add(name)
    return tuple(
        overrides.get(entry.name, entry.factory)
        for entry in _ENTRIES
        if entry.name in selected - removed
    )
