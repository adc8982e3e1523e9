"""The inventory: all slices, updated change by change, and the pools each node can use.

The pools of a node are gathered on demand and cached until something they depend on changes: a slice of
the node, a slice not bound to one node, or a pool that spans nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from allot.allocation.devices import PoolDevice
from allot.allocation.errors import AllocationError
from allot.allocation.pools import Pool, PoolAssembly, PoolId, SliceDevices, gather_pools
from allot.allocation.problem import TargetNode
from allot.allocation.search.work_meter import WorkMeter
from allot.allocation.taints import TaintRules, may_select
from allot.api.base import replace
from allot.api.classes import DeviceTaintRule, DeviceTaintSelector
from allot.api.slices import ResourceSlice
from allot.features import FeatureGates
from allot.rules import NO_SELECTOR_SELECTS_NOTHING, READY_DEVICES_FIRST

_EVERYWHERE = ""
"""The key of slices that are not bound to one node."""


class NodeView:
    """What one node can use: its pools and their devices, in the order they are tried.

    The order is that of v1.38: pool by pool, those with binding conditions last. With `ready_first` devices
    without binding conditions come before all others (KEP-5007), and otherwise stay in that order.
    """

    __slots__ = ("_ready", "devices", "error", "has_invalid_pools", "pool_by_id", "pools")

    def __init__(
        self, pools: tuple[Pool, ...], error: str, meter: WorkMeter, *, ready_first: bool = False
    ) -> None:
        self.pools = pools
        self.error = error
        """Why the pools could not be gathered, if so."""
        self.pool_by_id: dict[PoolId, Pool] = {}
        self.has_invalid_pools = False
        devices: list[PoolDevice] = []
        for pool in pools:
            meter.spend(1)
            self.pool_by_id[pool.id] = pool
            self.has_invalid_pools = self.has_invalid_pools or pool.is_invalid
            if pool.is_usable:
                devices += pool.devices
        self._ready: int | None = None
        """How many devices are ready; None if devices are in the order of the pools."""
        if ready_first and any(pool.waits_for_binding for pool in pools):
            meter.spend(len(devices) // 4)
            ready = [device for device in devices if not device.waits_for_binding]
            self._ready = len(ready)
            devices = [*ready, *(device for device in devices if device.waits_for_binding)]
        self.devices = tuple(devices)

    def places(self) -> Iterator[tuple[Pool, Sequence[int]]]:
        """The pools in order, each with the positions of its devices in `devices`."""
        next_ready, next_waiting = 0, self._ready or 0
        for pool in self.pools:
            if self._ready is None or not pool.waits_for_binding:
                end = next_ready + len(pool.devices)
                yield pool, range(next_ready, end)
                next_ready = end
                continue
            places = []
            for device in pool.devices:
                if device.waits_for_binding:
                    places.append(next_waiting)
                    next_waiting += 1
                else:
                    places.append(next_ready)
                    next_ready += 1
            yield pool, places


class _CachedView(NamedTuple):
    node: TargetNode
    made_from: tuple[int, int]
    whole_pools: dict[PoolId, int]
    view: NodeView


class Inventory:
    """Slices by name, in the order of their first arrival."""

    def __init__(self, gates: FeatureGates, slices: Iterable[ResourceSlice] = ()) -> None:
        self.gates = gates
        self._entries: dict[str, SliceDevices] = {}
        self._names_by_node: dict[str, dict[str, None]] = {}
        self._names_by_pool: dict[PoolId, dict[str, None]] = {}
        self._changes_by_node: dict[str, int] = {}
        self._changes_by_pool: dict[PoolId, int] = {}
        self._views: dict[str, _CachedView] = {}
        self._gathered_by_node: dict[str, dict[PoolId, PoolAssembly]] = {}
        """The pools of each node: those whose slices are unchanged are not made again."""
        self._taint_rules = TaintRules()
        for slice_ in slices:
            self.put(slice_)

    def put(self, slice_: ResourceSlice, name: str = "") -> None:
        """Add a slice, or replace the one of the same name.

        `name` is its own unless given otherwise, for slices that did not come from an API server.
        """
        name = name or slice_.metadata.name
        known = self._entries.get(name)
        if known is not None and _place(known.slice) != _place(slice_):
            self.remove(name)
        self._entries[name] = SliceDevices(slice_, self._taint_rules)
        node, pool = _place(slice_)
        self._names_by_node.setdefault(node, {})[name] = None
        self._names_by_pool.setdefault(pool, {})[name] = None
        self._changed(node, pool)

    def remove(self, name: str) -> None:
        """Remove a slice, if there is one of this name."""
        entry = self._entries.pop(name, None)
        if entry is None:
            return
        node, pool = _place(entry.slice)
        _discard(self._names_by_node, node, name)
        _discard(self._names_by_pool, pool, name)
        self._changed(node, pool)

    def put_taint_rule(self, rule: DeviceTaintRule) -> bool:
        """Add a DeviceTaintRule, or replace the one of the same name. False if this changes nothing."""
        if NO_SELECTOR_SELECTS_NOTHING not in self.gates:
            rule = _selecting_all_by_default(rule)
        return self._change_taints(self._taint_rules.put(rule))

    def remove_taint_rule(self, name: str) -> bool:
        """Remove a DeviceTaintRule, if there is one of this name."""
        return self._change_taints(self._taint_rules.remove(name))

    def _change_taints(self, changed: tuple[DeviceTaintRule, ...]) -> bool:
        if not changed:
            return False
        for pool, names in list(self._names_by_pool.items()):
            if any(may_select(rule, *pool) for rule in changed):
                for name in list(names):
                    self.put(self._entries[name].slice, name)
        return True

    @property
    def taint_rules(self) -> tuple[DeviceTaintRule, ...]:
        """The DeviceTaintRules in force, by name."""
        return self._taint_rules.sorted

    def slices(self) -> Iterator[ResourceSlice]:
        return (entry.slice for entry in self._entries.values())

    def view(self, node: TargetNode, meter: WorkMeter | None = None) -> NodeView:
        """The pools of a node; gathered again only if something they depend on changed.

        `DeadlineExceededError` if the meter's deadline passes first; devices prepared until then stay prepared.
        """
        meter = meter or WorkMeter()
        made_from = (
            self._changes_by_node.get(node.name, 0),
            self._changes_by_node.get(_EVERYWHERE, 0),
        )
        known = self._views.get(node.name)
        if (
            known is not None
            and known.made_from == made_from
            and (known.node is node or known.node == node)
            and self._are_unchanged(known.whole_pools, meter)
        ):
            return known.view
        whole_pools: dict[PoolId, int] = {}
        view = self._gathered(node, whole_pools, meter)
        self._views[node.name] = _CachedView(node, made_from, whole_pools, view)
        return view

    def forget_node(self, name: str) -> None:
        """Drop the cached view of a deleted node. Its slices are removed by `remove`."""
        self._views.pop(name, None)
        self._gathered_by_node.pop(name, None)

    def _are_unchanged(self, pools: dict[PoolId, int], meter: WorkMeter) -> bool:
        changes = self._changes_by_pool
        for number, (pool, at) in enumerate(pools.items()):
            if not number % 64:
                meter.spend(16)
            if changes[pool] != at:
                return False
        return True

    def _gathered(
        self, node: TargetNode, whole_pools: dict[PoolId, int], meter: WorkMeter
    ) -> NodeView:
        def whole_pool(pool: PoolId) -> Iterator[SliceDevices]:
            whole_pools[pool] = self._changes_by_pool[pool]
            return self._named(self._names_by_pool[pool])

        nodes = (node.name, _EVERYWHERE) if node.name else (_EVERYWHERE,)
        slices = (entry for key in nodes for entry in self._named(self._names_by_node.get(key, ())))
        try:
            known = self._gathered_by_node.setdefault(node.name, {})
            pools = gather_pools(slices, whole_pool, node, self.gates, meter, known)
        except AllocationError as error:
            return NodeView((), f"gather pool information: {error}", meter)
        return NodeView(pools, "", meter, ready_first=READY_DEVICES_FIRST in self.gates)

    def _named(self, names: Iterable[str]) -> Iterator[SliceDevices]:
        return (self._entries[name] for name in names)

    def _changed(self, node: str, pool: PoolId) -> None:
        self._changes_by_node[node] = self._changes_by_node.get(node, 0) + 1
        self._changes_by_pool[pool] = self._changes_by_pool.get(pool, 0) + 1


def _selecting_all_by_default(rule: DeviceTaintRule) -> DeviceTaintRule:
    """The rule as v1.38's scheduler reads it: without a selector it selects every device."""
    if rule.spec.device_selector is not None:
        return rule
    return replace(rule, spec=replace(rule.spec, device_selector=DeviceTaintSelector()))


def _place(slice_: ResourceSlice) -> tuple[str, PoolId]:
    spec = slice_.spec
    return spec.node_name or _EVERYWHERE, PoolId(spec.driver, spec.pool.name)


def _discard(names_by_key: dict, key: object, name: str) -> None:  # type: ignore[type-arg]
    names = names_by_key[key]
    del names[name]
    if not names:
        del names_by_key[key]
