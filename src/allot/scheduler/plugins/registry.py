"""Plugins by name: those that only look at the cluster. Those that change something are put together in `assembly`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from allot.features import EXTENDED_RESOURCE
from allot.scheduler.configuration import ConfigurationError, duration_seconds
from allot.scheduler.framework.plugins import Plugin
from allot.scheduler.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from allot.scheduler.plugins.dynamic_resources.claim_tracker import ClaimTracker
from allot.scheduler.plugins.dynamic_resources.device_state import DeviceState
from allot.scheduler.plugins.dynamic_resources.filter_results import DynamicResourcesArgs
from allot.scheduler.plugins.image_locality import ImageLocality
from allot.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from allot.scheduler.plugins.node_affinity import NodeAffinity
from allot.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from allot.scheduler.plugins.node_name import NodeName
from allot.scheduler.plugins.node_ports import NodePorts
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit, never
from allot.scheduler.plugins.node_unschedulable import NodeUnschedulable
from allot.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from allot.scheduler.plugins.priority_sort import PrioritySort
from allot.scheduler.plugins.scheduling_gates import SchedulingGates
from allot.scheduler.plugins.taint_toleration import TaintToleration
from allot.scheduler.plugins.topology_spread import PodTopologySpread
from allot.scheduler.plugins.volume_restrictions import VolumeRestrictions
from allot.scheduler.plugins.volume_zone import VolumeZone
from allot.scheduler.state.cluster import ClusterState
from allot.scheduler.state.volumes import VolumeState
from allot.scheduler.state.workloads import WorkloadSelectors


class Handle(NamedTuple):
    """All that plugins look at. Kept up to date by others."""

    cluster: ClusterState
    claims: ClaimTracker
    devices: DeviceState
    volumes: VolumeState
    workloads: WorkloadSelectors


def judging_plugin(name: str, args: Mapping[str, Any], known: Handle) -> Plugin:
    """A plugin that judges, sorts or scores; `ConfigurationError` if there is none of this name."""
    match name:
        case "SchedulingGates":
            return SchedulingGates()
        case "PrioritySort":
            return PrioritySort()
        case "NodeName":
            return NodeName()
        case "NodeUnschedulable":
            return NodeUnschedulable()
        case "TaintToleration":
            return TaintToleration()
        case "NodeAffinity":
            return NodeAffinity(args)
        case "NodePorts":
            return NodePorts()
        case "NodeResourcesFit":
            extended = EXTENDED_RESOURCE in known.devices.gates
            return NodeResourcesFit(args, known.devices.extended.is_backed if extended else never)
        case "NodeResourcesBalancedAllocation":
            return NodeResourcesBalancedAllocation(args)
        case "VolumeRestrictions":
            return VolumeRestrictions(known.volumes)
        case "NodeVolumeLimits":
            return NodeVolumeLimits(known.volumes)
        case "VolumeZone":
            return VolumeZone(known.volumes)
        case "PodTopologySpread":
            return PodTopologySpread(args, known.workloads.selector_of)
        case "InterPodAffinity":
            return InterPodAffinity(args)
        case "ImageLocality":
            return ImageLocality()
        case "NodeDeclaredFeatures":
            return NodeDeclaredFeatures()
    raise ConfigurationError(f"unknown plugin {name}")


def read_dynamic_resources_args(args: Mapping[str, Any]) -> DynamicResourcesArgs:
    """The arguments of DynamicResources; `ConfigurationError` for values that make no sense."""
    known = DynamicResourcesArgs()
    path = "DynamicResourcesArgs"
    filter_seconds, binding_seconds, prefers_ready = known
    if args.get("filterTimeout") is not None:
        filter_seconds = duration_seconds(args["filterTimeout"], f"{path}.filterTimeout")
        if filter_seconds < 0:
            raise ConfigurationError(f"{path}.filterTimeout: must be zero or positive")
    if args.get("bindingTimeout") is not None:
        binding_seconds = duration_seconds(args["bindingTimeout"], f"{path}.bindingTimeout")
        if binding_seconds < 1:
            raise ConfigurationError(f"{path}.bindingTimeout: must be at least 1 second")
    if args.get("preferReadyDevices") is not None:
        prefers_ready = args["preferReadyDevices"]
        if not isinstance(prefers_ready, bool):
            raise ConfigurationError(f"{path}.preferReadyDevices: must be true or false")
    return DynamicResourcesArgs(filter_seconds, binding_seconds, prefers_ready)
