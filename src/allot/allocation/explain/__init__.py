"""Why claims do not fit, and what would help.

    `conflicts`    irreducible sets of requests and constraints that cannot be satisfied together
    `explanation`  the conflict, and per request how far it got and why each device was refused
    `proposals`    single changes that make the claims fit, each verified by an allocation
    `guards`       selectors guarded by `has()`

The results are values (`findings`, `reasons`, `changes`); `wording` turns them into messages.
"""

from allot.allocation.explain.changes import AnyChange, ProposedChange
from allot.allocation.explain.conflicts import ConflictSet, Proof, find_conflict
from allot.allocation.explain.explanation import explain
from allot.allocation.explain.findings import (
    Conflict,
    Explanation,
    Refusal,
    RequestReport,
    UnusablePool,
)
from allot.allocation.explain.proposals import Proposal, Proposals, proposals
from allot.allocation.explain.reasons import AnyReason, RefusalReason
from allot.allocation.explain.wording import Wording

__all__ = [
    "AnyChange",
    "AnyReason",
    "Conflict",
    "ConflictSet",
    "Explanation",
    "Proof",
    "Proposal",
    "Proposals",
    "ProposedChange",
    "Refusal",
    "RefusalReason",
    "RequestReport",
    "UnusablePool",
    "Wording",
    "explain",
    "find_conflict",
    "proposals",
]
