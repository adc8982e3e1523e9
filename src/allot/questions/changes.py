"""Changes of a cluster, as a person states them, carried out on a `ClusterModel` one after the other.

AddObjects     nodes, slices, classes, workloads, pods: created, or updated if they exist
DrainNode      cordoned, and its pods evicted; pods of DaemonSets stay
TaintNode, TaintDevices   with NoExecute, pods that do not tolerate it are evicted
RemoveObject   deleted with its dependents
ScaleWorkload  another number of replicas
EvictPod       deleted as by the eviction API, within disruption budgets

`object_changes` changes the objects of the model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from allot.allocation.devices import PoolDevice
from allot.allocation.errors import AllocationError
from allot.allocation.search.candidates import LazySelector
from allot.api.base import replace
from allot.api.core import Node
from allot.api.identities import DeviceId, ObjectKey
from allot.api.resource import (
    NO_EXECUTE,
    NO_SCHEDULE,
    CELDeviceSelector,
    DeviceSelector,
    DeviceTaint,
)
from allot.api.similar_names import did_you_mean, similar_names
from allot.api.slices import Device, ResourceSlice
from allot.client import resources
from allot.client.resources import Resource
from allot.controllers.workloads.ownership import controller_of
from allot.questions.cluster_model import ClusterModel
from allot.questions.object_changes import (
    evict,
    evict_from_tainted_devices,
    evict_from_tainted_node,
    put_object,
    remove_object,
)

TAINT_KEY: Final = "allot.dev/what-if"
EFFECTS: Final = (NO_SCHEDULE, NO_EXECUTE)


class ChangeError(ValueError):
    """The change cannot be made: it is not understood, or names something that does not exist."""


@dataclass(frozen=True)
class Change(ABC):
    """One change. `text` is as it was asked for."""

    text: str

    @abstractmethod
    def apply(self, model: ClusterModel) -> Iterator[str]:
        """Make the change. Notes about what could not be done."""


@dataclass(frozen=True)
class AddObjects(Change):
    """Create objects, or update them if they exist."""

    objects: tuple[tuple[Resource[Any], Any], ...]
    must_be_new: bool = False
    """Whether a node of the same name is an error."""

    def apply(self, model: ClusterModel) -> Iterator[str]:
        for resource, obj in self.objects if self.must_be_new else ():
            if resource is resources.NODES and model.objects.get(resource, obj.key) is not None:
                raise ChangeError(f"{self.text}: node {obj.metadata.name} exists already")
        for resource, obj in sorted(self.objects, key=lambda each: each[0] is resources.PODS):
            refusal = put_object(model, resource, obj)
            if refusal:
                yield f"{resource.kind.lower()}/{obj.metadata.name} is refused: {refusal}"


@dataclass(frozen=True)
class DrainNode(Change):
    """Cordon a node and evict its pods, as `kubectl drain --ignore-daemonsets` does."""

    node: str

    def apply(self, model: ClusterModel) -> Iterator[str]:
        node = _node(model, self.node)
        model.put_node(node.with_value(True, "spec", "unschedulable"))
        for pod in model.pods_on(self.node):
            controller = controller_of(pod)
            if controller is None or controller.kind != "DaemonSet":
                yield from evict(model, pod, f"node {self.node} is drained")


@dataclass(frozen=True)
class TaintNode(Change):
    """Add a taint to a node."""

    node: str
    effect: str = NO_EXECUTE

    def apply(self, model: ClusterModel) -> Iterator[str]:
        node = _node(model, self.node)
        taints = [*node.taints, {"key": TAINT_KEY, "effect": self.effect}]
        tainted = node.with_value(taints, "spec", "taints")
        model.put_node(tainted)
        evict_from_tainted_node(model, tainted)
        yield from ()


@dataclass(frozen=True)
class TaintDevices(Change):
    """Add a taint to the devices that an expression selects, or to one device."""

    expression: str = ""
    device: DeviceId | None = None
    effect: str = NO_EXECUTE

    def apply(self, model: ClusterModel) -> Iterator[str]:
        taint = DeviceTaint(key=TAINT_KEY, effect=self.effect)
        failures: list[AllocationError] = []
        selects = self._selects(failures)
        tainted: set[DeviceId] = set()
        for slice_ in model.objects.of(resources.RESOURCE_SLICES):
            changed = _tainted(slice_, selects, taint, tainted)
            if changed is not slice_:
                put_object(model, resources.RESOURCE_SLICES, changed)
        if not tainted:
            if failures:
                raise ChangeError(str(failures[0]))  # names the change
            raise ChangeError(f"{self.text}: selects no device")
        if self.effect == NO_EXECUTE:
            evict_from_tainted_devices(model, tainted)
        yield from ()

    def _selects(self, failures: list[AllocationError]) -> Callable[[ResourceSlice, Device], bool]:
        """Devices on which the expression fails, such as those of other drivers, are not selected."""
        if self.device is not None:
            wanted = self.device
            return lambda slice_, device: slice_.spec.device_id(device) == wanted
        selector = LazySelector(
            self.text, DeviceSelector(CELDeviceSelector(expression=self.expression))
        )

        def selects(slice_: ResourceSlice, device: Device) -> bool:
            try:
                return bool(selector.matches(PoolDevice(slice_, device)))
            except AllocationError as error:
                failures.append(error)
                return False

        return selects


@dataclass(frozen=True)
class RemoveObject(Change):
    """Delete an object with its dependents."""

    resource: Resource[Any]
    key: ObjectKey

    def apply(self, model: ClusterModel) -> Iterator[str]:
        obj = _existing(model, self.resource, self.key)
        yield from remove_object(model, self.resource, obj)


@dataclass(frozen=True)
class ScaleWorkload(Change):
    """Set the number of replicas."""

    resource: Resource[Any]
    key: ObjectKey
    replicas: int

    def apply(self, model: ClusterModel) -> Iterator[str]:
        workload = _existing(model, self.resource, self.key)
        field = "parallelism" if self.resource is resources.JOBS else "replicas"
        model.workloads.put(workload.with_value(self.replicas, "spec", field))
        yield from ()


@dataclass(frozen=True)
class EvictPod(Change):
    """Evict a pod, as the eviction API does."""

    key: ObjectKey

    def apply(self, model: ClusterModel) -> Iterator[str]:
        yield from evict(model, _existing(model, resources.PODS, self.key), "evicted")


def _tainted(
    slice_: ResourceSlice,
    selects: Callable[[ResourceSlice, Device], bool],
    taint: DeviceTaint,
    tainted: set[DeviceId],
) -> ResourceSlice:
    devices = []
    for device in slice_.spec.devices or ():
        if selects(slice_, device):
            tainted.add(slice_.spec.device_id(device))
            devices.append(replace(device, taints=(*device.taints, taint)))
        else:
            devices.append(device)
    if tuple(devices) == (slice_.spec.devices or ()):
        return slice_
    return replace(slice_, spec=replace(slice_.spec, devices=tuple(devices)))


def _node(model: ClusterModel, name: str) -> Node:
    found: Node = _existing(model, resources.NODES, ObjectKey("", name))
    return found


def _existing(model: ClusterModel, resource: Resource[Any], key: ObjectKey) -> Any:
    found = model.objects.get(resource, key)
    if found is None:
        known = [
            each.metadata.name
            for each in model.objects.of(resource)
            if not resource.namespaced or each.metadata.namespace == key.namespace
        ]
        where = f" in namespace {key.namespace}" if resource.namespaced else ""
        hint = did_you_mean(similar_names(key.name, known))
        raise ChangeError(f"no {resource.kind} {key.name}{where}{hint}")
    return found
