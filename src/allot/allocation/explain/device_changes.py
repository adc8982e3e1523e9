"""Candidate changes of what devices are there: released by claims, tolerated, added, or made usable by a feature."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace as replace_problem
from typing import Final

from msgspec.structs import replace

from allot.allocation.allocated_devices import shown_holder
from allot.allocation.devices import PoolDevice
from allot.allocation.explain.change_scope import (
    DEVICE_WORK,
    MAX_TRIED,
    Candidate,
    Candidates,
    PutSpec,
    RequestKey,
    Spec,
)
from allot.allocation.explain.changes import (
    AddToleration,
    AddTolerations,
    EnableFeature,
    MoreDevices,
    ReleaseClaim,
)
from allot.allocation.inventory import Inventory, NodeView
from allot.allocation.pools import PoolId
from allot.allocation.problem import AllocationProblem
from allot.allocation.search.work_meter import WorkMeter
from allot.api.meta import ObjectMeta
from allot.api.resource import EXISTS, DeviceTaint, DeviceToleration
from allot.api.slices import ResourcePool, ResourceSlice, ResourceSliceSpec
from allot.api.taints import is_tolerated
from allot.features import (
    BINDING_CONDITIONS,
    DERIVED_ATTRIBUTES,
    PARTITIONABLE_DEVICES,
    PRIORITIZED_LIST,
    FeatureGates,
)

_MAX_MORE_DEVICES: Final = 8
"""The most additional devices of a kind to propose."""
_FEATURES: Final = (
    DERIVED_ATTRIBUTES,
    BINDING_CONDITIONS,
    PARTITIONABLE_DEVICES,
    PRIORITIZED_LIST,
)
"""Gates that claims or devices may need."""


def with_tolerations(
    place: RequestKey, spec: Spec, put: PutSpec, view: NodeView, meter: WorkMeter
) -> Candidates:
    """A toleration for each taint, and for all taints of devices that have several."""
    taints: dict[tuple[str, str], DeviceTaint] = {}
    together: dict[tuple[tuple[str, str], ...], None] = {}
    for device in view.devices:
        meter.spend(1 + len(device.taints) // 2)
        untolerated = {
            (taint.key, taint.effect): taint
            for taint in device.taints
            if not is_tolerated(taint, spec.tolerations, comparison_operators=False)
        }
        taints |= untolerated
        if len(untolerated) > 1:
            together[tuple(untolerated)] = None
    for key, effect in list(taints)[:MAX_TRIED]:
        tolerated = AddToleration(*place, key, effect)
        yield tolerated, Candidate(1, tolerated, put(_tolerating(spec, [(key, effect)])))
    for several in list(together)[:MAX_TRIED]:
        shown = tuple(f"{key}:{effect}" for key, effect in several)
        all_tolerated = AddTolerations(*place, shown)
        yield all_tolerated, Candidate(len(several), all_tolerated, put(_tolerating(spec, several)))


def _tolerating(spec: Spec, taints: Iterable[tuple[str, str]]) -> Spec:
    more = (DeviceToleration(key, EXISTS, "", effect) for key, effect in taints)
    return replace(spec, tolerations=(*spec.tolerations, *more))


def with_release(problem: AllocationProblem, view: NodeView, meter: WorkMeter) -> Candidates:
    """A claim that holds devices of the node releases them."""
    holders: dict[str, None] = {}
    for device in view.devices:
        held_by = problem.ledger.holders(device.id)
        meter.spend(1 + len(held_by))
        holders.update(dict.fromkeys(held_by))
    for holder in list(holders)[:MAX_TRIED]:
        release = ReleaseClaim(shown_holder(holder))
        freed = replace_problem(problem, ledger=problem.ledger.without(holder, meter))
        yield release, Candidate(1, release, freed)


def with_feature(problem: AllocationProblem, view: NodeView, meter: WorkMeter) -> Candidates:
    """A feature is switched on that claims use or devices need."""
    for gate in _FEATURES:
        if gate not in problem.inventory.gates:
            enable = EnableFeature(gate)
            gates = problem.inventory.gates.switched({gate: True})
            inventory = _copied(problem, view, gates, meter)
            yield enable, Candidate(1, enable, replace_problem(problem, inventory=inventory))


def with_more_devices(problem: AllocationProblem, view: NodeView, meter: WorkMeter) -> Candidates:
    """More devices like an existing one, free and unpartitioned, with its taints; like those without taints first."""
    models: dict[object, PoolDevice] = {}
    for device in view.devices:
        own = device.device
        meter.spend(DEVICE_WORK * (1 + len(own.attributes) + len(own.capacity)))
        looks = (
            device.id.driver,
            frozenset(own.capacity.items()),
            own.allow_multiple_allocations,
            frozenset((name, str(value)) for name, value in own.attributes.items()),
            frozenset((taint.key, taint.value, taint.effect) for taint in device.taints),
        )
        models.setdefault(looks, device)
    # One inventory for all proposals: each is tried before the next one changes it.
    inventory = _copied(problem, view, problem.inventory.gates, meter)
    # What taints a device would probably taint another one like it.
    for model in sorted(models.values(), key=_is_tainted)[:MAX_TRIED]:
        driver, pool, name = model.id
        for number in range(1, _MAX_MORE_DEVICES + 1):
            inventory.put(_slice_of_copies(model, number, problem.node.name))
            more = MoreDevices(number, name, pool, driver, problem.node.name)
            changed = replace_problem(problem, inventory=inventory)
            yield (MoreDevices, driver), Candidate(number, more, changed)


def _copied(
    problem: AllocationProblem, view: NodeView, gates: FeatureGates, meter: WorkMeter
) -> Inventory:
    """An inventory of the node's pools."""
    inventory = Inventory(gates)
    for rule in problem.inventory.taint_rules:
        inventory.put_taint_rule(rule)
    for slice_ in problem.inventory.slices():
        meter.spend(DEVICE_WORK)
        if PoolId(slice_.spec.driver, slice_.spec.pool.name) in view.pool_by_id:
            inventory.put(slice_)
    return inventory


def _is_tainted(device: PoolDevice) -> bool:
    return bool(device.taints)


def _slice_of_copies(model: PoolDevice, number: int, node: str) -> ResourceSlice:
    copies = tuple(
        replace(
            model.device,
            name=f"{model.id.device}-more-{copy}",
            consumes_counters=(),
            taints=model.taints,
            node_name=None,
            node_selector=None,
            all_nodes=None,
        )
        for copy in range(number)
    )
    # Sorts after every real pool, so that existing devices are used first.
    name = "\U0010ffff more"
    spec = ResourceSliceSpec(
        driver=model.id.driver, pool=ResourcePool(name, 1, 1), node_name=node, devices=copies
    )
    return ResourceSlice(ObjectMeta(name=name), spec)
