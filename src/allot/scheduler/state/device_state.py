"""Devices, classes and taint rules, kept up to date by events, and the nodes that a change concerns."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from allot.allocation import Inventory, Ledger, TargetNode
from allot.allocation.pools import PoolId
from allot.api.claims import AllocationResult
from allot.api.classes import DeviceClass, DeviceTaintRule
from allot.api.slices import ResourceSlice
from allot.features import DEVICE_TAINTS, FeatureGates
from allot.scheduler.state.extended_resource_classes import ResourceClasses
from allot.scheduler.state.node_equivalence import NodeEquivalence
from allot.scheduler.state.nodes import NodeInfo

TouchNode = Callable[[str], None]
"""Called with the node for which devices, or which of them are free, have changed; "" means all nodes."""


class DeviceState:
    """The state of slices, classes and taint rules. For use in one event loop."""

    def __init__(self, gates: FeatureGates, touch: TouchNode = lambda _: None) -> None:
        self.gates = gates
        self.inventory = Inventory(gates)
        self.classes: dict[str, DeviceClass] = {}
        self._classes_version = 0
        self.extended = ResourceClasses()
        self._node_by_slice: dict[str, str] = {}
        self._node_by_pool: dict[PoolId, str] = {}
        """The only node that can use a pool's devices; empty if several can."""
        self._with_conditions: set[str] = set()
        """Slices with devices that have binding conditions (KEP-5007), by name."""
        self._with_node_bound: set[str] = set()
        """Slices with devices that bind to a node (KEP-5007), by name."""
        self._node_equivalence = NodeEquivalence()
        self._node_classes: dict[str, tuple[int, TargetNode, Hashable | None]] = {}
        """Equivalence classes by node, each with the last change that it includes."""
        self._touch_node = touch
        self._changes = 0
        self._last_change: dict[str, int] = {}
        """The number of the last change of a node."""
        self._last_change_of_all = 0
        """That of the last change of all nodes."""

    # --- what the informers say ---

    def put_slice(self, slice_: ResourceSlice) -> None:
        pool = PoolId(slice_.spec.driver, slice_.spec.pool.name)
        node = slice_.spec.node_name or ""
        known = self._node_by_pool.setdefault(pool, node)
        if known != node:
            self._node_by_pool[pool] = ""
        before = self._node_by_slice.get(slice_.metadata.name, node)
        self._node_by_slice[slice_.metadata.name] = node
        if before != node:
            self._touch(before)
        self._forget_kinds(slice_.metadata.name)
        for device in slice_.spec.devices or ():
            if device.binding_conditions:
                self._with_conditions.add(slice_.metadata.name)
            if device.binds_to_node:
                self._with_node_bound.add(slice_.metadata.name)
        self.inventory.put(slice_)
        self._node_equivalence.put(slice_)
        self._touch(self._node_by_pool[pool] and node)

    def remove_slice(self, slice_: ResourceSlice) -> None:
        pool = PoolId(slice_.spec.driver, slice_.spec.pool.name)
        self.inventory.remove(slice_.metadata.name)
        self._node_equivalence.remove(slice_.metadata.name)
        self._node_by_slice.pop(slice_.metadata.name, None)
        self._forget_kinds(slice_.metadata.name)
        self._touch(self._node_by_pool.get(pool, "") and (slice_.spec.node_name or ""))

    def _forget_kinds(self, slice_name: str) -> None:
        """Forget what kinds of devices the slice has."""
        self._with_conditions.discard(slice_name)
        self._with_node_bound.discard(slice_name)

    def put_class(self, class_: DeviceClass) -> None:
        self._classes_version += 1
        self.classes[class_.metadata.name] = class_
        self.extended.put(class_)
        self._touch("")

    def remove_class(self, class_: DeviceClass) -> None:
        self._classes_version += 1
        self.classes.pop(class_.metadata.name, None)
        self.extended.remove(class_.metadata.name)
        self._touch("")

    def put_rule(self, rule: DeviceTaintRule) -> bool:
        """Whether devices may have other taints now. They have not if only the status of the rule is new."""
        is_changed = DEVICE_TAINTS in self.gates and self.inventory.put_taint_rule(rule)
        if is_changed:
            self._touch("")
        return is_changed

    def remove_rule(self, rule: DeviceTaintRule) -> None:
        if self.inventory.remove_taint_rule(rule.metadata.name):
            self._touch("")

    def forget_node(self, name: str) -> None:
        self._node_classes.pop(name, None)
        self._last_change.pop(name, None)
        self.inventory.forget_node(name)

    @property
    def has_binding_conditions(self) -> bool:
        """Whether some device has binding conditions."""
        return bool(self._with_conditions)

    @property
    def has_node_bound_devices(self) -> bool:
        """Whether some device binds to a node."""
        return bool(self._with_node_bound)

    # --- what it means for nodes ---

    def target(self, node: NodeInfo) -> TargetNode:
        """The node for the allocator; the same object until the node changes."""
        facts = node.facts
        assert facts is not None
        return facts.target

    def allocation_changed(self, allocation: AllocationResult) -> None:
        """Devices of this allocation were taken or released."""
        nodes: set[str] = set()
        for result in allocation.devices.results:
            node = self._node_by_pool.get(PoolId(result.driver, result.pool), "")
            if not node:
                self._touch("")
                return
            nodes.add(node)
        for node in nodes:
            self._touch(node)

    def drivers_on(self, node: str) -> frozenset[str]:
        """The drivers that have devices on this node alone."""
        return self._node_equivalence.drivers(node)

    def node_equivalence_class(self, target: TargetNode, ledger: Ledger) -> Hashable | None:
        """Equal for nodes on which equal claims get equal results; None if unknown."""
        if self.inventory.taint_rules:
            return None  # rules may select single devices
        last_change = self.last_change(target.name)
        known = self._node_classes.get(target.name)
        if known is not None and known[0] == last_change and known[1] is target:
            return known[2]
        node_class = self._node_equivalence.class_of(target, ledger)
        if node_class is not None:
            node_class = (self._classes_version, node_class)
        self._node_classes[target.name] = last_change, target, node_class
        return node_class

    def pools_of(self, node: str) -> tuple[PoolId, ...]:
        """A node's own pools, one for each slice, in the same order for all nodes of an equivalence class."""
        return self._node_equivalence.pools(node)

    def last_change(self, node: str) -> int:
        """A number that changes whenever the devices for a node, or which of them are free, change."""
        return max(self._last_change.get(node, 0), self._last_change_of_all)

    def _touch(self, node: str) -> None:
        """Devices changed for one node, or (without a name) for all nodes."""
        self._changes += 1
        if node:
            self._last_change[node] = self._changes
        else:
            self._last_change_of_all = self._changes
        self._touch_node(node)
