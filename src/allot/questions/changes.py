"""Changes of a cluster, as a person states them, carried out on a `ClusterModel` one after the other.

AddObjects     nodes, slices, classes, workloads, pods: created, or updated if they exist
DrainNode      cordoned, and its pods evicted; pods of DaemonSets stay
TaintNode, TaintDevices   with NoExecute, pods that do not tolerate it are evicted
RemoveObject   deleted with its dependents
ScaleWorkload  another number of replicas
EvictPod       deleted as by the eviction API, within disruption budgets
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from allot.allocation.devices import PoolDevice
from allot.allocation.errors import AllocationError
from allot.allocation.search.candidates import LazySelector
from allot.allocation.taints import selects as rule_selects
from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.core import Node, Pod
from allot.api.identities import DeviceId, ObjectKey
from allot.api.raw import RawObject
from allot.api.resource import (
    NO_EXECUTE,
    NO_SCHEDULE,
    CELDeviceSelector,
    DeviceSelector,
    DeviceTaint,
)
from allot.api.similar_names import did_you_mean, similar_names
from allot.api.slices import Device, ResourceSlice
from allot.apiserver.kinds.eviction import EvictionGranted, decide_eviction
from allot.client import resources
from allot.client.resources import Resource
from allot.controllers.device_taint_eviction.evictions import (
    EvictingTaint,
    claim_names,
    pod_eviction,
)
from allot.controllers.taint_eviction.decisions import evicting_taints, leaves_at
from allot.controllers.workloads.ownership import controller_of
from allot.questions.cluster_clone import FieldReduction
from allot.questions.cluster_model import ClusterModel
from allot.questions.workload_model import BY_KIND, with_defaults
from allot.scheduler.explain.static_scheduler import WORKLOAD_KINDS

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
        model.put_node(node.with_value(taints, "spec", "taints"))
        evict_from_tainted_node(model, self.node)
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
            return lambda slice_, device: (
                DeviceId(slice_.spec.driver, slice_.spec.pool.name, device.name) == wanted
            )
        selector = LazySelector(
            self.text, DeviceSelector(CELDeviceSelector(expression=self.expression))
        )

        def selects(slice_: ResourceSlice, device: Device) -> bool:
            try:
                return bool(selector.matches(PoolDevice(slice_, device, ())))
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


# --- carrying out ---


def put_object(model: ClusterModel, resource: Resource[Any], obj: Any) -> str:
    """Create or update an object of any kind; why it was refused, or an empty string."""
    handlers = model.scheduler.handlers
    if resource is resources.PODS:
        known = model.objects.get(resource, obj.key)
        if known is not None and known.node_name:
            return "a pod that has a node cannot be changed"
        if known is not None:
            model.delete_pod(known)
        return model.create_pod(obj)
    if resource.kind in BY_KIND:
        model.workloads.put(_like_stored(model, resource, obj))
        return ""
    if resource is resources.NODES:
        model.put_node(obj)
    elif resource is resources.RESOURCE_CLAIMS:
        model.scheduler.put_claim(obj)
    else:
        known = model.objects.get(resource, resource.codec.key(obj))
        model.objects.put(resource, obj)
        if resource is resources.RESOURCE_SLICES:
            handlers.on_slice_update(known, obj)
            model.recount_devices()
        elif resource is resources.DEVICE_CLASSES:
            handlers.on_class_update(known, obj)
        elif resource is resources.DEVICE_TAINT_RULES:
            handlers.on_taint_rule_update(obj)
            evict_from_tainted_devices(model, None)
        elif resource is resources.NAMESPACES:
            handlers.on_namespace_update(obj)
        elif resource in WORKLOAD_KINDS:
            model.scheduler.put_workload(obj)
    return ""


def _like_stored(model: ClusterModel, resource: Resource[Any], obj: Any) -> Any:
    """A workload of a manifest with defaults, and with the uid and status of the stored one.

    An unchanged template is the stored one: its pods are not replaced.
    """
    known = model.objects.get(resource, obj.key)
    workload = with_defaults(obj)
    if known is None:
        return workload
    workload = workload.with_value(known.metadata.uid, "metadata", "uid")
    if _has_template_of(resource, workload, known):
        workload = workload.with_value(known.get("spec", "template"), "spec", "template")
        generation = known.get("metadata", "generation")
        workload = workload.with_value(generation, "metadata", "generation")
    return workload.with_value(known.get("status"), "status")


def _has_template_of(resource: Resource[Any], workload: RawObject, known: RawObject) -> bool:
    """Whether the pod template is that of the stored workload, which may be reduced to what scheduling reads."""
    if workload.get("spec", "template") == with_defaults(known).get("spec", "template"):
        return True
    reduction = FieldReduction(None, b"")
    stored = known.get("spec", "template")
    if reduction.of(resource, known)["spec"].get("template") != stored:
        return False  # it has all fields, and so differs
    reduced = reduction.of(resource, with_defaults(known))["spec"]["template"]
    return bool(reduction.of(resource, workload)["spec"].get("template") == reduced)


def remove_object(model: ClusterModel, resource: Resource[Any], obj: Any) -> Iterator[str]:
    """Delete an object, and what does not outlive it."""
    handlers = model.scheduler.handlers
    if resource is resources.PODS:
        model.delete_pod(obj, "deleted")
    elif resource.kind in BY_KIND:
        model.workloads.remove(obj)
    elif resource is resources.NODES:
        name = obj.metadata.name
        for pod in model.pods_on(name):
            model.delete_pod(pod, f"node {name} is deleted")
        model.remove_node(obj)
    elif resource is resources.RESOURCE_CLAIMS:
        yield from _remove_claim(model, obj)
    else:
        model.objects.remove(resource, resource.codec.key(obj))
        if resource is resources.RESOURCE_SLICES:
            handlers.on_slice_delete(obj)
            model.recount_devices()
        elif resource is resources.DEVICE_CLASSES:
            handlers.on_class_delete(obj)
        elif resource is resources.DEVICE_TAINT_RULES:
            handlers.on_taint_rule_delete(obj)
        elif resource in WORKLOAD_KINDS:
            model.scheduler.remove_workload(obj)


def _remove_claim(model: ClusterModel, claim: ResourceClaim) -> Iterator[str]:
    """A claim goes when its last pod is gone: a running pod keeps it."""
    users = [each.name for each in claim.status.reserved_for]
    if users:
        names = ", ".join(f"pod/{name}" for name in users)
        yield f"claim {claim.key} stays until {names} has ended"
        return
    model.remove_claim(claim)


def evict(model: ClusterModel, pod: Pod, reason: str) -> Iterator[str]:
    """Evict a pod within disruption budgets; a note if a budget protects it."""
    budgets = [
        budget
        for budget in model.objects.of(resources.POD_DISRUPTION_BUDGETS)
        if budget.metadata.namespace == pod.key.namespace
    ]
    decision = decide_eviction(pod, budgets, model.today())
    if not isinstance(decision, EvictionGranted):
        yield f"pod {pod.key} stays: {decision.message}"
        return
    if decision.budget is not None:
        model.objects.put(resources.POD_DISRUPTION_BUDGETS, decision.budget)
    model.delete_pod(pod, reason)


def evict_from_tainted_node(model: ClusterModel, name: str) -> None:
    """Delete the pods that do not tolerate the node's NoExecute taints, the first to leave first."""
    node = _node(model, name)
    taints = [(taint, taint.added_at or model.today()) for taint in evicting_taints(node)]
    leaving = [(at, pod) for pod in model.pods_on(name) if (at := leaves_at(pod, taints))]
    for at, pod in sorted(leaving, key=lambda each: (each[0], each[1].key)):
        seconds = (at - model.today()).total_seconds()
        later = f", after {seconds:.0f} s" if seconds > 0 else ""
        model.delete_pod(pod, f"node {name} is tainted{later}")


def evict_from_tainted_devices(model: ClusterModel, devices: Iterable[DeviceId] | None) -> None:
    """Delete the pods whose devices have NoExecute taints that they do not tolerate."""
    concerned = None if devices is None else set(devices)
    taints = _device_taints(model)
    found = []
    for pod in model.objects.of(resources.PODS):
        keys = (ObjectKey(pod.key.namespace, name) for name in claim_names(pod))
        claims = [
            claim
            for key in keys
            if (claim := model.objects.get(resources.RESOURCE_CLAIMS, key)) is not None
        ]
        if concerned is not None and concerned.isdisjoint(_devices_of(claims)):
            continue
        eviction = pod_eviction(pod, claims, taints)
        if eviction is not None:
            found.append((eviction.at, pod))
    for _, pod in sorted(found, key=lambda each: (each[0], each[1].key)):
        model.delete_pod(pod, "a device of it is tainted")


def _device_taints(model: ClusterModel) -> Callable[[DeviceId], Iterable[EvictingTaint]]:
    by_device: dict[DeviceId, list[EvictingTaint]] = {}
    for slice_ in model.objects.of(resources.RESOURCE_SLICES):
        for device in slice_.spec.devices or ():
            id_ = DeviceId(slice_.spec.driver, slice_.spec.pool.name, device.name)
            for taint in device.taints:
                if taint.effect == NO_EXECUTE:
                    by_device.setdefault(id_, []).append(EvictingTaint(taint))
    rules = [
        rule
        for rule in model.objects.of(resources.DEVICE_TAINT_RULES)
        if rule.spec.taint.effect == NO_EXECUTE
    ]

    def taints_of(device: DeviceId) -> Iterator[EvictingTaint]:
        yield from by_device.get(device, ())
        yield from (EvictingTaint(rule.spec.taint) for rule in rules if rule_selects(rule, device))

    return taints_of


def _devices_of(claims: Iterable[ResourceClaim]) -> Iterator[DeviceId]:
    for claim in claims:
        if claim.status.allocation is not None:
            for result in claim.status.allocation.devices.results:
                yield result.device_id


def _tainted(
    slice_: ResourceSlice,
    selects: Callable[[ResourceSlice, Device], bool],
    taint: DeviceTaint,
    tainted: set[DeviceId],
) -> ResourceSlice:
    devices = []
    for device in slice_.spec.devices or ():
        if selects(slice_, device):
            tainted.add(DeviceId(slice_.spec.driver, slice_.spec.pool.name, device.name))
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
