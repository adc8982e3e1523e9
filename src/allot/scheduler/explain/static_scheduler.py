"""A scheduler in a cluster that stands still: it can be asked what it would do, and does nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from allot.api.claims import ResourceClaim
from allot.api.identities import ObjectKey
from allot.client import resources
from allot.client.resources import Resource
from allot.client.snapshot import Snapshot
from allot.features import BINDING_CONDITIONS, DEVICE_STATUS, EXTENDED_RESOURCE, FeatureGates
from allot.scheduler.configuration import ProfileConfiguration, SchedulerConfiguration
from allot.scheduler.explain.explainer import PodExplainer
from allot.scheduler.framework.plugins import Plugin
from allot.scheduler.framework.profiles import Profile
from allot.scheduler.plugins.dynamic_resources.binding_wait import BindingWait
from allot.scheduler.plugins.dynamic_resources.claim_filter import (
    NAME,
    ClaimFilter,
    no_extended_resources,
    why_unusable_without_gate,
)
from allot.scheduler.plugins.dynamic_resources.claim_tracker import ClaimTracker
from allot.scheduler.plugins.dynamic_resources.device_state import DeviceState
from allot.scheduler.plugins.dynamic_resources.pod_extension import (
    PodExtension,
    extended_claim_pod,
    extension_of,
)
from allot.scheduler.plugins.registry import (
    Handle,
    judging_plugin,
    read_dynamic_resources_args,
)
from allot.scheduler.plugins.volume_binding import VolumeBinding
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.nodes import NodeFacts
from allot.scheduler.state.pods import PodInfo
from allot.scheduler.state.volumes import VolumeState
from allot.scheduler.state.workloads import WorkloadSelectors

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
"""What most decisions rest on."""
VOLUME_KINDS: Final = (
    resources.PERSISTENT_VOLUME_CLAIMS,
    resources.PERSISTENT_VOLUMES,
    resources.STORAGE_CLASSES,
    resources.CSI_STORAGE_CAPACITIES,
    resources.CSI_DRIVERS,
    resources.CSI_NODES,
    resources.VOLUME_ATTACHMENTS,
)
"""What counts for pods with volumes."""
WORKLOAD_KINDS: Final = (
    resources.SERVICES,
    resources.REPLICATION_CONTROLLERS,
    resources.REPLICA_SETS,
    resources.STATEFUL_SETS,
)
"""What says which pods belong together, for profiles that spread them."""
_ACTING: Final = frozenset({"DefaultPreemption", "DefaultBinder"})
"""Plugins that do something and decide nothing."""


class StaticScheduler:
    """What a scheduler would know and decide if the cluster were as a snapshot shows it."""

    def __init__(
        self,
        snapshot: Snapshot,
        configuration: SchedulerConfiguration,
        gates: FeatureGates,
        today: Callable[[], datetime],
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
        """All of them, with and without a node, running and finished."""
        self.binding_timeouts: dict[str, timedelta] = {}
        """By the names of the profiles."""
        self._known = Handle(
            self.cluster, self.claims, self.devices, VolumeState(), WorkloadSelectors()
        )
        self.claims.add_ledger_listener(self.devices.allocation_changed)
        self.profiles = {
            profile.scheduler_name: self._profile(profile) for profile in configuration.profiles
        }
        self.explainer = PodExplainer(self.cluster)
        self._fill(snapshot)

    # --- plugins ---

    def _profile(self, configuration: ProfileConfiguration) -> Profile:
        name = configuration.scheduler_name
        return Profile(
            name,
            [
                self._plugin(plugin, configuration.args.get(plugin) or {}, name)
                for plugin in configuration.plugins
                if plugin not in _ACTING
            ],
            configuration.weights,
            disabled=configuration.disabled,
            percentage_of_nodes_to_score=100,
        )

    def _plugin(self, name: str, args: Mapping[str, Any], profile: str) -> Plugin:
        if name == "VolumeBinding":
            return VolumeBinding(self._known.volumes, self.cluster, None, args)
        if name != NAME:
            return judging_plugin(name, args, self._known)
        read = read_dynamic_resources_args(args)
        timeout = timedelta(seconds=read.binding_timeout_seconds)
        self.binding_timeouts[profile] = timeout
        has_conditions = BINDING_CONDITIONS in self.gates and DEVICE_STATUS in self.gates
        wait = BindingWait(self.claims, timeout, self.today)
        return ClaimFilter(
            self.claims,
            self.devices,
            read,
            find_extension=self._extension
            if EXTENDED_RESOURCE in self.gates
            else no_extended_resources,
            why_unusable=wait.why_unusable
            if has_conditions
            else why_unusable_without_gate(self.gates),
        )

    def _extension(self, pod: PodInfo) -> PodExtension | None:
        claims = self.snapshot.of(resources.RESOURCE_CLAIMS)
        left_over = tuple(claim for claim in claims if extended_claim_pod(claim) == pod.uid)
        return extension_of(pod, self.devices.extended.class_of, left_over)

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
        for pod in snapshot.of(resources.PODS):
            info = self.pods[pod.key] = PodInfo.of(pod)
            self.cluster.set_pod(info)
            if not info.node_name and not info.is_finished:
                self.cluster.nominations.put(info, info.nominated_node_name)

    def _fill_volumes(self, snapshot: Snapshot) -> None:
        volumes = self._known.volumes
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
        known = self._known.workloads
        services, *others = WORKLOAD_KINDS
        for service in snapshot.of(services):
            known.set_service(*service.key, service.data)
        for resource in others:
            for workload in snapshot.of(resource):
                known.set_workload(resource.kind, *workload.key, workload.data)

    def claim(self, key: ObjectKey) -> ResourceClaim | None:
        return self.claims.get(key)
