"""Allocation: claims, devices and what is taken go in; which devices each claim gets comes out.

    slices → `inventory` → pools of a node ┐
    claims → `ledger`    → what is taken   ├→ `problem` → `allocator` → Allocated, Infeasible, …
    claims to allocate   → `requests`      ┘                 └→ `search` over `candidates`

The answer is the one Kubernetes v1.38 gives: the first solution in its order. `search` says how it
is found without trying everything, `explain` says why no allocation exists and what would help.
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
    AllocationProblem,
    Failed,
    Infeasible,
    Limit,
    Outcome,
    StepBudget,
    TargetNode,
)
from allot.allocation.replay import replay
from allot.allocation.requests import SkippedAlternative

__all__ = [
    "Abandoned",
    "Allocated",
    "AllocationProblem",
    "ChosenAlternative",
    "Conflict",
    "Explanation",
    "Failed",
    "Infeasible",
    "Inventory",
    "Ledger",
    "Limit",
    "Outcome",
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
