"""The allocation problem and its possible outcomes."""

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
    """The node that claims are allocated for: its name and labels select devices."""

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
    """How many steps the search may take. The same on every machine, unlike seconds."""

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
    """Free devices that these claims must not get."""


@dataclass(frozen=True, slots=True)
class Allocated:
    """One result per claim, in the claims' order."""

    results: tuple[AllocationResult, ...]
    steps: int = field(default=0, compare=False)
    skipped: tuple[SkippedAlternative, ...] = field(default=(), compare=False)
    """Alternatives that could not be tried (KEP-4816)."""


@dataclass(frozen=True, slots=True)
class Infeasible:
    """There is no solution on this node.

    `invalid_pools`: some pool was skipped because it is inconsistent. Kubernetes reports that instead of a
    plain "does not fit".
    """

    invalid_pools: bool = False
    steps: int = field(default=0, compare=False)


class Limit(Enum):
    """Which limit ended the search."""

    STEPS = "steps"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The step budget or the deadline ended the search."""

    steps: int
    requests_satisfied: int
    """The most requests, of all claims, that had their devices at the same time."""
    limit: Limit = Limit.STEPS
    claim: str = field(default="", compare=False)
    """The claim in progress; empty while the node's devices were gathered."""
    request: str = field(default="", compare=False)
    """Its request, or the alternative of it."""
    expression: str = field(default="", compare=False)
    """The CEL expression in evaluation on `device`, if any."""
    device: DeviceId | None = field(default=None, compare=False)
    kept: int = field(default=0, compare=False)
    """Devices prepared and expressions evaluated, whose results are kept: another run goes on after them."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A claim, a class or a device is faulty; the message is that of Kubernetes."""

    error: str
    steps: int = field(default=0, compare=False)


AllocationOutcome = Allocated | Infeasible | Abandoned | Failed

INVALID_POOLS = "invalid resource pools were encountered"
