"""Objects of a `ClusterModel` created, updated, deleted and evicted, with what follows for others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from allot.allocation.taints import selects as rule_selects
from allot.api.claims import ResourceClaim
from allot.api.core import Node, Pod
from allot.api.identities import DeviceId, ObjectKey
from allot.api.raw import RawObject
from allot.api.resource import (
    NO_EXECUTE,
)
from allot.apiserver.kinds.eviction import EvictionGranted, decide_eviction
from allot.client import resources
from allot.client.resources import Resource
from allot.controllers.device_taint_eviction.evictions import (
    EvictingTaint,
    claim_names,
    pod_eviction,
)
from allot.controllers.taint_eviction.decisions import evicting_taints, leaves_at
from allot.questions.cluster_clone import FieldReduction
from allot.questions.cluster_model import ClusterModel
from allot.questions.workload_model import BY_KIND, with_defaults
from allot.scheduler.explain.static_scheduler import WORKLOAD_KINDS


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


def evict_from_tainted_node(model: ClusterModel, node: Node) -> None:
    """Delete the pods that do not tolerate the node's NoExecute taints, the first to leave first."""
    name = node.metadata.name
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
            id_ = slice_.spec.device_id(device)
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
