"""The question and its possible answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from allot.api.claims import AllocationResult, ResourceClaim
from allot.api.classes import DeviceClass
from allot.api.core import Node
from allot.api.identities import DeviceId

if TYPE_CHECKING:
    from allot.allocation.allocated_devices import Ledger
    from allot.allocation.inventory import Inventory
    from allot.allocation.requests import SkippedAlternative


class TargetNode(NamedTuple):
    """The node the claims are allocated for: what decides which devices it can use."""

    name: str
    labels: Mapping[str, str] = {}
    declared_features: frozenset[str] = frozenset()

    @staticmethod
    def of(node: Node) -> TargetNode:
        return TargetNode(
            node.get("metadata", "name", default=""),
            node.get("metadata", "labels", default={}),
            frozenset(node.get("status", "declaredFeatures", default=())),
        )


class StepBudget(NamedTuple):
    """How much searching an answer may cost. The same on every machine, unlike seconds."""

    max_steps: int


@dataclass(frozen=True, slots=True)
class AllocationProblem:
    """All claims of one pod, to be allocated together for one node: all or nothing.

    Which features are on is a property of `inventory` and `ledger`, which must agree.
    """

    node: TargetNode
    claims: Sequence[ResourceClaim]
    classes: Mapping[str, DeviceClass]
    inventory: Inventory
    ledger: Ledger
    avoided: frozenset[DeviceId] = frozenset()
    """Devices that are not given to these claims, although they are free."""


@dataclass(frozen=True, slots=True)
class Allocated:
    """One result per claim, in their order."""

    results: tuple[AllocationResult, ...]
    steps: int = field(default=0, compare=False)
    skipped: tuple[SkippedAlternative, ...] = field(default=(), compare=False)
    """Alternatives that could not be tried (KEP-4816)."""


@dataclass(frozen=True, slots=True)
class Infeasible:
    """There is no solution on this node.

    `invalid_pools` tells that some pool was left out because it contradicts itself; Kubernetes
    reports that instead of a plain "does not fit".
    """

    invalid_pools: bool = False
    steps: int = field(default=0, compare=False)


class Limit(Enum):
    """What ended an allocation that has no answer."""

    STEPS = "steps"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The budget or the caller's time ran out before there was an answer."""

    steps: int
    requests_satisfied: int
    """How many requests, of all claims, had their devices at the best moment."""
    limit: Limit = Limit.STEPS
    claim: str = field(default="", compare=False)
    """The claim that was being worked on; empty while the node's devices were gathered."""
    request: str = field(default="", compare=False)
    """Its request, or the alternative of it."""
    expression: str = field(default="", compare=False)
    """The CEL expression that was being evaluated, if any, on `device`."""
    device: DeviceId | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """Something is wrong with a claim, a class or a device; the text is Kubernetes' own."""

    error: str
    steps: int = field(default=0, compare=False)


Outcome = Allocated | Infeasible | Abandoned | Failed

INVALID_POOLS = "invalid resource pools were encountered"
