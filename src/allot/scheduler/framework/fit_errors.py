"""The sentence that says why a pod fits on no node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from allot.scheduler.framework.status import Status

NO_NODES: Final = "no nodes available to schedule pods"


def count_reasons(statuses: Iterable[Status]) -> str:
    """`2 Insufficient cpu, 1 Too many pods` and so on, sorted as texts. Empty if there are no reasons.

    A node with several reasons counts for each.
    """
    counts = Counter(reason for status in statuses for reason in status.reasons)
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


def no_node_fits(
    number_of_nodes: int,
    statuses: Iterable[Status],
    *,
    pre_filter_message: str = "",
    post_filter_message: str = "",
) -> str:
    """The message of the PodScheduled condition and the FailedScheduling event."""
    message = f"0/{number_of_nodes} nodes are available:"
    reasons = pre_filter_message or count_reasons(statuses)
    if reasons:
        message += f" {reasons}."
    if post_filter_message:
        message += f" {post_filter_message}"
    return message
