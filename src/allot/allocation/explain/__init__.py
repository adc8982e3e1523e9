"""Why claims do not fit, and what would help.

    `conflicts`    which requests and constraints cannot be satisfied together, proven by the allocator
    `explanation`  that, and for each request how far it came and why each device was refused
    `proposals`    single changes that make the claims fit, each of them tried
    `guards`       selectors that test first whether a device has what they read

All of that are values (`findings`, `reasons`, `changes`); `wording` turns them into text.
"""

from allot.allocation.explain.changes import AnyChange, Change
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
from allot.allocation.explain.reasons import AnyReason, Reason
from allot.allocation.explain.wording import Wording

__all__ = [
    "AnyChange",
    "AnyReason",
    "Change",
    "Conflict",
    "ConflictSet",
    "Explanation",
    "Proof",
    "Proposal",
    "Proposals",
    "Reason",
    "Refusal",
    "RequestReport",
    "UnusablePool",
    "Wording",
    "explain",
    "find_conflict",
    "proposals",
]
