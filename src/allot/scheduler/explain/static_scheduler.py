"""A scheduler on a snapshot of a cluster: it decides and writes nothing."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.client import resources
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.features import FeatureGates
from allot.scheduler.configuration import ProfileConfiguration, SchedulerConfiguration
from allot.scheduler.explain.explainer import PodExplainer
from allot.scheduler.framework.handle import Handle
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME
from allot.scheduler.plugins.dynamic_resources.factory import read_dynamic_resources_args
from allot.scheduler.plugins.registry import PluginRegistry
from allot.scheduler.state.claim_tracker import ClaimTracker
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.device_state import DeviceState
from allot.scheduler.state.nodes import NodeFacts
from allot.scheduler.state.pods import PodInfo

DEVICE_KINDS: Final[tuple[Resource[Any], ...]] = (
    resources.PODS,
    resources.NODES,
    resources.NAMESPACES,
    resources.RESOURCE_CLAIMS,
    resources.RESOURCE_CLAIM_TEMPLATES,
    resources.RESOURCE_SLICES,
    resources.DEVICE_CLASSES,
    resources.DEVICE_TAINT_RULES,
)
"""Resources that every decision needs."""
VOLUME_KINDS: Final = (
    resources.PERSISTENT_VOLUME_CLAIMS,
    resources.PERSISTENT_VOLUMES,
    resources.STORAGE_CLASSES,
    resources.CSI_STORAGE_CAPACITIES,
    resources.CSI_DRIVERS,
    resources.CSI_NODES,
    resources.VOLUME_ATTACHMENTS,
)
"""Resources for pods with volumes."""
WORKLOAD_KINDS: Final = (
    resources.SERVICES,
    resources.REPLICATION_CONTROLLERS,
    resources.REPLICA_SETS,
    resources.STATEFUL_SETS,
)
"""Resources that group pods, for profiles with default topology spread constraints."""


class StaticScheduler:
    """The state and the profiles of a scheduler on a snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        configuration: SchedulerConfiguration,
        gates: FeatureGates,
        today: Callable[[], datetime],
        plugins: PluginRegistry | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if configuration.rules is not None:
            gates = gates.with_rules(configuration.rules)
        self.snapshot = snapshot
        self.gates = gates
        self.today = today
        self.cluster = ClusterState()
        self.claims = ClaimTracker(gates)
        self.devices = DeviceState(gates, self.cluster.touch)
        self.pods: dict[ObjectKey, PodInfo] = {}
        """All pods: assigned and unassigned, running and finished."""
        self.binding_timeouts: dict[str, timedelta] = {}
        """By scheduler name."""
        self._handle = Handle(
            gates, self.cluster, self.claims, self.devices, clock=clock, utc_now=today
        )
        self._registry = plugins or PluginRegistry.with_installed()
        self._configuration = configuration
        self.profiles = self._profiles()
        self.explainer = PodExplainer(self.cluster)
        self._follow()
        self._fill(snapshot)

    def _follow(self) -> None:
        """Called before the state is filled: each allocation updates the devices."""
        self.claims.add_ledger_listener(self.devices.allocation_changed)

    def with_claims(self, claims: Iterable[ResourceClaim]) -> StaticScheduler:
        """A copy with further claims, none of them allocated. This one does not change."""
        changed = copy.copy(self)
        changed.claims = ClaimTracker(self.gates)
        for claim in (*self.claims, *claims):
            changed.claims.put(claim)
        changed._handle = replace(self._handle, claims=changed.claims)
        changed.profiles = changed._profiles()
        return changed

    def _profiles(self) -> dict[str, Profile]:
        return {
            profile.scheduler_name: self._profile(profile)
            for profile in self._configuration.profiles
        }

    def _profile(self, configuration: ProfileConfiguration) -> Profile:
        specs = [self._registry[name] for name in configuration.plugins]
        args = configuration.args
        if NAME in configuration.plugins:
            read = read_dynamic_resources_args(args.get(NAME) or {})
            timeout = timedelta(seconds=read.binding_timeout_seconds)
            self.binding_timeouts[configuration.scheduler_name] = timeout
        handle = replace(self._handle)
        profile = Profile(
            configuration.scheduler_name,
            [
                spec.factory(args.get(spec.name) or {}, handle)
                for spec in specs
                if not spec.has_side_effects
            ],
            configuration.weights,
            disabled=configuration.disabled,
            percentage_of_nodes_to_score=self._percentage_of_nodes_to_score(configuration),
        )
        handle.filters.profile = profile
        return profile

    def _percentage_of_nodes_to_score(self, configuration: ProfileConfiguration) -> int:
        """All nodes are explained, whatever the configuration says."""
        return 100

    # --- state ---

    def _fill(self, snapshot: Snapshot) -> None:
        for node in snapshot.of(resources.NODES):
            self.cluster.set_node(NodeFacts.of(node))
        for namespace in snapshot.of(resources.NAMESPACES):
            self.cluster.set_namespace(namespace.metadata.name, namespace.metadata.labels)
        for class_ in snapshot.of(resources.DEVICE_CLASSES):
            self.devices.put_class(class_)
        for slice_ in snapshot.of(resources.RESOURCE_SLICES):
            self.devices.put_slice(slice_)
        for rule in snapshot.of(resources.DEVICE_TAINT_RULES):
            self.devices.put_rule(rule)
        for claim in snapshot.of(resources.RESOURCE_CLAIMS):
            self.claims.put(claim)
        self._fill_volumes(snapshot)
        self._fill_workloads(snapshot)
        self._fill_pods(snapshot)

    def _fill_pods(self, snapshot: Snapshot) -> None:
        for pod in snapshot.of(resources.PODS):
            info = self.pods[pod.key] = PodInfo.of(pod)
            self.cluster.set_pod(info)
            if not info.node_name and not info.is_finished:
                self.cluster.nominations.put(info, info.nominated_node_name)

    def _fill_volumes(self, snapshot: Snapshot) -> None:
        volumes = self._handle.volumes
        puts = (
            volumes.set_claim,
            volumes.set_volume,
            volumes.set_class,
            volumes.set_capacity,
            volumes.set_csi_driver,
            volumes.set_csi_node,
            volumes.set_attachment,
        )
        for resource, put in zip(VOLUME_KINDS, puts, strict=True):
            for obj in snapshot.of(resource):
                put(obj)

    def _fill_workloads(self, snapshot: Snapshot) -> None:
        known = self._handle.workloads
        services, *others = WORKLOAD_KINDS
        for service in snapshot.of(services):
            known.set_service(*service.key, service.data)
        for resource in others:
            for workload in snapshot.of(resource):
                known.set_workload(resource.kind, *workload.key, workload.data)

    def claim(self, key: ObjectKey) -> ResourceClaim | None:
        return self.claims.get(key)
