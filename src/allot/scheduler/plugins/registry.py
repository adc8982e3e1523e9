"""The registry of plugins: each plugin is one row here, or comes from another package.

A row has the plugin's factory, its default weight, and whether it only acts. Extension points
follow from the plugin's class. Out-of-tree plugins are given as `PluginSpec`s, or found by the entry point group
`allot.scheduler_plugins`: the name is the plugin's, the object a `PluginSpec`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from allot.client import resources
from allot.features import EXTENDED_RESOURCE
from allot.scheduler.framework.handle import Handle
from allot.scheduler.framework.plugin_args import ConfigurationError
from allot.scheduler.framework.plugins import Plugin, extension_points
from allot.scheduler.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from allot.scheduler.plugins.default_binder import DefaultBinder
from allot.scheduler.plugins.default_preemption import DefaultPreemption
from allot.scheduler.plugins.device_scores.plugins import (
    DevicePacking,
    DeviceSpreading,
    LeastFragmentation,
    LeastStrandedCapacity,
)
from allot.scheduler.plugins.dynamic_resources.factory import dynamic_resources
from allot.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from allot.scheduler.plugins.eviction import Evictor
from allot.scheduler.plugins.image_locality import ImageLocality
from allot.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from allot.scheduler.plugins.node_affinity import NodeAffinity
from allot.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from allot.scheduler.plugins.node_name import NodeName
from allot.scheduler.plugins.node_ports import NodePorts
from allot.scheduler.plugins.node_resources_fit import NodeResourcesFit, never
from allot.scheduler.plugins.node_unschedulable import NodeUnschedulable
from allot.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from allot.scheduler.plugins.preemption_victims import DisruptionBudget
from allot.scheduler.plugins.priority_sort import PrioritySort
from allot.scheduler.plugins.scheduling_gates import SchedulingGates
from allot.scheduler.plugins.taint_toleration import TaintToleration
from allot.scheduler.plugins.topology_spread import PodTopologySpread
from allot.scheduler.plugins.volume_api import InformedVolumeApi
from allot.scheduler.plugins.volume_binding import VolumeBinding
from allot.scheduler.plugins.volume_restrictions import VolumeRestrictions
from allot.scheduler.plugins.volume_zone import VolumeZone

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_OPT_IN_WEIGHT: Final = 10
"""So that they outweigh the plugins that spread pods by CPU and memory."""
ENTRY_POINT_GROUP: Final = "allot.scheduler_plugins"

PluginFactory = Callable[[Mapping[str, Any], Handle], Plugin]
"""Creates a plugin for one profile from its `pluginConfig` arguments and the handle."""


class PluginSpec(NamedTuple):
    """A row of the registry."""

    plugin: type[Plugin]
    factory: PluginFactory
    weight: int = 1
    """The default weight of its scores."""
    is_default: bool = False
    """Whether it is enabled without being named in the configuration."""
    has_side_effects: bool = False
    """Whether it only acts and decides nothing; not used where nothing is written, as in `allot explain`."""

    @property
    def name(self) -> str:
        return self.plugin.name

    @property
    def extension_points(self) -> tuple[str, ...]:
        return extension_points(self.plugin)


def _without_args(plugin: Callable[[], Plugin]) -> PluginFactory:
    return lambda _args, _handle: plugin()


def _in_tree(
    plugin: type[Plugin], factory: PluginFactory, weight: int = 0, *, has_side_effects: bool = False
) -> PluginSpec:
    return PluginSpec(plugin, factory, weight, True, has_side_effects)


def _opt_in(plugin: type[Plugin], factory: PluginFactory) -> PluginSpec:
    """A plugin that Kubernetes does not have: off unless the configuration enables it."""
    return PluginSpec(plugin, factory, _OPT_IN_WEIGHT)


def _node_resources_fit(args: Mapping[str, Any], handle: Handle) -> Plugin:
    is_on = EXTENDED_RESOURCE in handle.gates
    return NodeResourcesFit(args, handle.devices.extended.is_backed if is_on else never)


def _volume_binding(args: Mapping[str, Any], handle: Handle) -> Plugin:
    client, api = handle.client, None
    if client is not None:
        api = handle.shared(InformedVolumeApi, lambda: InformedVolumeApi(client, handle.informers))
    return VolumeBinding(handle.volumes, handle.cluster, api, args)


def _default_preemption(args: Mapping[str, Any], handle: Handle) -> Plugin:
    assert handle.client is not None
    assert handle.informers is not None
    budgets = handle.informers.informer(resources.POD_DISRUPTION_BUDGETS)
    return DefaultPreemption(
        handle.filters,
        lambda: map(DisruptionBudget.of, budgets.list()),
        Evictor(handle.client, handle.utc_now, handle.waiting_pods).evict,
        random.randrange,
        args,
        handle.metrics.preemption_attempts.inc if handle.metrics is not None else lambda: None,
    )


def _default_binder(_args: Mapping[str, Any], handle: Handle) -> Plugin:
    assert handle.client is not None
    return DefaultBinder(handle.client)


IN_TREE: Final = (
    _in_tree(SchedulingGates, _without_args(SchedulingGates)),
    _in_tree(PrioritySort, _without_args(PrioritySort)),
    _in_tree(NodeName, _without_args(NodeName)),
    _in_tree(NodeUnschedulable, _without_args(NodeUnschedulable)),
    _in_tree(TaintToleration, _without_args(TaintToleration), 3),
    _in_tree(NodeAffinity, lambda args, _: NodeAffinity(args), 2),
    _in_tree(NodePorts, _without_args(NodePorts)),
    _in_tree(NodeResourcesFit, _node_resources_fit, 1),
    _in_tree(VolumeRestrictions, lambda _, handle: VolumeRestrictions(handle.volumes)),
    _in_tree(NodeVolumeLimits, lambda _, handle: NodeVolumeLimits(handle.volumes)),
    _in_tree(VolumeBinding, _volume_binding),
    _in_tree(VolumeZone, lambda _, handle: VolumeZone(handle.volumes)),
    _in_tree(
        PodTopologySpread,
        lambda args, handle: PodTopologySpread(args, handle.workloads.selector_of),
        2,
    ),
    _in_tree(InterPodAffinity, lambda args, _: InterPodAffinity(args), 2),
    _in_tree(DynamicResources, dynamic_resources, 2),
    _in_tree(DefaultPreemption, _default_preemption, has_side_effects=True),
    _in_tree(
        NodeResourcesBalancedAllocation,
        lambda args, _: NodeResourcesBalancedAllocation(args),
        1,
    ),
    _in_tree(ImageLocality, _without_args(ImageLocality), 1),
    _in_tree(DefaultBinder, _default_binder, has_side_effects=True),
    _in_tree(NodeDeclaredFeatures, _without_args(NodeDeclaredFeatures)),
    _opt_in(DevicePacking, DevicePacking),
    _opt_in(DeviceSpreading, DeviceSpreading),
    _opt_in(LeastFragmentation, LeastFragmentation),
    _opt_in(LeastStrandedCapacity, LeastStrandedCapacity),
)
"""The plugins of this package, in the order in which they are called by default."""


class PluginRegistry:
    """Plugins by name: in-tree ones, and those of other packages."""

    def __init__(
        self,
        specs: Iterable[PluginSpec] = (),
        find_installed: Callable[[], Iterable[EntryPoint]] = tuple,
    ) -> None:
        """`specs` are out-of-tree plugins. `find_installed` is called when a name is not among those."""
        self._specs = {spec.name: spec for spec in (*IN_TREE, *specs)}
        self._find_installed = find_installed

    @classmethod
    def with_installed(cls, specs: Iterable[PluginSpec] = ()) -> PluginRegistry:
        """The registry with the plugins of all installed packages, loaded when they are first used."""
        return cls(specs, _installed_entry_points)

    @cached_property
    def _installed(self) -> Mapping[str, EntryPoint]:
        return {point.name: point for point in self._find_installed()}

    def __iter__(self) -> Iterator[str]:
        yield from self._specs
        yield from (name for name in self._installed if name not in self._specs)

    def __contains__(self, name: object) -> bool:
        return name in self._specs or name in self._installed

    def __getitem__(self, name: str) -> PluginSpec:
        """`ConfigurationError` if there is no plugin of this name, or its package cannot be loaded."""
        spec = self._specs.get(name)
        if spec is not None:
            return spec
        point = self._installed.get(name)
        if point is None:
            raise ConfigurationError(f"unknown plugin {name}; available: {', '.join(self)}")
        spec = self._specs[name] = _loaded(point)
        return spec

    @property
    def default_names(self) -> tuple[str, ...]:
        """The plugins that are enabled by default, in order."""
        return tuple(name for name, spec in self._specs.items() if spec.is_default)


def _installed_entry_points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # takes longer to load than this module

    return entry_points(group=ENTRY_POINT_GROUP)


def _loaded(point: EntryPoint) -> PluginSpec:
    where = f"plugin {point.name} ({point.value})"
    try:
        spec = point.load()
    except Exception as error:
        raise ConfigurationError(f"{where} cannot be loaded: {error}") from error
    if not isinstance(spec, PluginSpec):
        raise ConfigurationError(f"{where} is not a PluginSpec but {type(spec).__name__}")
    if spec.name != point.name:
        raise ConfigurationError(f"{where} has the name {spec.name!r}")
    return spec
