"""Allocation: from claims, devices and allocated state to the devices that each claim gets.

    slices → `inventory` → pools of a node ┐
    claims → `ledger`    → allocated state ├→ `problem` → `allocator` → Allocated, Infeasible, …
    claims to allocate   → `requests`      ┘                 └→ `search` over `candidates`

The result is that of the structured allocator of Kubernetes v1.38: the first solution in its order.
`search` finds it without trying everything; `explain` tells why no allocation exists and what would help.
"""

from allot.allocation.allocated_devices import Ledger
from allot.allocation.allocator import allocate
from allot.allocation.explain import (
    Conflict,
    Explanation,
    Proof,
    Proposal,
    Proposals,
    Refusal,
    RequestReport,
    Wording,
    explain,
    proposals,
)
from allot.allocation.inventory import Inventory
from allot.allocation.prioritized_scores import (
    ChosenAlternative,
    chosen_alternatives,
    has_alternatives,
    kubernetes_prioritized_scores,
    normalized_prioritized_scores,
    prioritized_list_score,
)
from allot.allocation.problem import (
    Abandoned,
    Allocated,
    AllocationOutcome,
    AllocationProblem,
    Failed,
    Infeasible,
    Limit,
    StepBudget,
    TargetNode,
)
from allot.allocation.replay import replay
from allot.allocation.requests import SkippedAlternative

__all__ = [
    "Abandoned",
    "Allocated",
    "AllocationOutcome",
    "AllocationProblem",
    "ChosenAlternative",
    "Conflict",
    "Explanation",
    "Failed",
    "Infeasible",
    "Inventory",
    "Ledger",
    "Limit",
    "Proof",
    "Proposal",
    "Proposals",
    "Refusal",
    "RequestReport",
    "SkippedAlternative",
    "StepBudget",
    "TargetNode",
    "Wording",
    "allocate",
    "chosen_alternatives",
    "explain",
    "has_alternatives",
    "kubernetes_prioritized_scores",
    "normalized_prioritized_scores",
    "prioritized_list_score",
    "proposals",
    "replay",
]
