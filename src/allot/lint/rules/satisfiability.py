"""Claims that no node can satisfy although nothing is wrong with any part: decided by the allocator itself.

All devices count as free and without taints, which come and go. Asked only about claims in which no other rule finds a problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from allot.allocation import (
    AllocationProblem,
    Infeasible,
    Inventory,
    Ledger,
    StepBudget,
    TargetNode,
    allocate,
)
from allot.allocation.explain import Explanation, Proof, Wording, explain
from allot.api.base import replace
from allot.api.claims import ResourceClaim, ResourceClaimTemplate
from allot.api.meta import ObjectMeta
from allot.api.slices import ResourceSlice
from allot.features import FeatureGates
from allot.lint import rule_table as rules
from allot.lint.findings import Problem
from allot.lint.known_objects import KnownObjects
from allot.lint.subjects import ClaimView, LintSubject

MAX_NODES: Final = 16
"""Nodes that are tried. Of more, nothing is said if none of these fits."""
_BUDGET: Final = StepBudget(20_000)


def unsatisfiable_claim(
    subject: LintSubject, known: KnownObjects, gates: FeatureGates
) -> Iterator[Problem]:
    claim = _claim_of(subject)
    if claim is None or subject.claim is None or not _is_decidable(subject.claim, known):
        return
    inventory = Inventory(gates)
    for name, slice_ in known.slices.items():
        inventory.put(_without_taints(slice_), name)
    named = {slice_.spec.node_name for slice_ in known.slices.values()}
    nodes = sorted(filter(None, named)) or ["any"]
    refused = []
    for node in nodes[:MAX_NODES]:
        problem = AllocationProblem(
            TargetNode(node), [claim], known.classes, inventory, Ledger(gates)
        )
        outcome = allocate(problem, _BUDGET, str)
        if not isinstance(outcome, Infeasible):
            return  # it fits, or that is not known
        refused.append(problem)
    if len(nodes) > MAX_NODES:
        return
    nearest = min(map(explain, refused), key=_distance)
    if nearest.conflict is None or nearest.conflict.proof is not Proof.IRREDUCIBLE or nearest.pools:
        return
    where = f"no node {known.where} can satisfy it"
    on = f"on node {nearest.node}, which comes nearest, " if len(nodes) > 1 else ""
    text = Wording(claim_names={str(claim.key): subject.manifest.name}).conflict(nearest)
    yield Problem(
        rules.UNSATISFIABLE_CLAIM,
        f"{subject.claim.path}.requests",
        f"{where}, even if all devices are free: {on}{text}",
    )


def _without_taints(slice_: ResourceSlice) -> ResourceSlice:
    devices = tuple(replace(device, taints=()) for device in slice_.spec.devices or ())
    return replace(slice_, spec=replace(slice_.spec, devices=devices))


def _claim_of(subject: LintSubject) -> ResourceClaim | None:
    obj = subject.object
    metadata = ObjectMeta(name=subject.manifest.name, namespace=subject.namespace, uid="lint")
    if isinstance(obj, ResourceClaim) and obj.status.allocation is None:
        return ResourceClaim(metadata=metadata, spec=obj.spec)
    if isinstance(obj, ResourceClaimTemplate):
        return ResourceClaim(metadata=metadata, spec=obj.spec.spec)
    return None


def _is_decidable(claim: ClaimView, known: KnownObjects) -> bool:
    """Whether the devices of all alternatives are known, and on which nodes they are."""
    if any(
        slice_.spec.node_selector is not None or slice_.spec.per_device_node_selection
        for slice_ in known.slices.values()
    ):
        return False
    return all(known.candidates(each) is not None for each in claim.alternatives())


def _distance(found: Explanation) -> tuple[int, int, str]:
    conflict = found.conflict
    if conflict is None:
        return 1000, 0, found.node
    return len(conflict.requests), conflict.devices_short, found.node
