"""Why a node does not take a pod, in one line, without names that differ from pod to pod."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from allot.allocation.explain.amounts import counted
from allot.allocation.explain.reasons import Held
from allot.scheduler.explain.explanations import NodeExplanation
from allot.scheduler.framework.status import Status
from allot.scheduler.plugins.dynamic_resources.claim_allocator import NAME

_OF_CLAIM: Final = re.compile(r" of claim [^\s,;]+")
_MAX_REASONS: Final = 3


def obstacle(node: NodeExplanation) -> str:
    """The conflict about devices with the reasons of most devices, or the values behind other reasons."""
    if not node.summary:
        return "; ".join(node.details) or ", ".join(node.reasons)
    conflict = _OF_CLAIM.sub("", node.summary.partition("; ")[0])
    refused: Counter[str] = Counter()
    for request in node.requests:
        if request.in_conflict or len(node.requests) == 1:
            for refusal in request.refusals:
                if refusal.because.is_wrong_class:
                    continue
                is_held = isinstance(refusal.because, Held)
                text = "held by other claims" if is_held else _OF_CLAIM.sub("", refusal.reason)
                refused[text] += len(refusal.devices)
    reasons = ", ".join(
        f"{counted(number, 'device')} {text}" for text, number in refused.most_common(_MAX_REASONS)
    )
    return f"{conflict}: {reasons}" if reasons else conflict


def counted_reasons(nodes: Iterable[NodeExplanation]) -> str:
    """`900 cannot allocate all claims, 100 Insufficient cpu`: the reasons of most nodes first."""
    found = Counter(reason for node in nodes for reason in node.reasons)
    return ", ".join(f"{number} {reason}" for reason, number in found.most_common(_MAX_REASONS))


_SPECIFIC_PLUGINS: Final = (NAME, "NodeResourcesFit")
"""Plugins whose reasons have values that say what is missing, the most specific first."""


def node_with_most_specific_reason(statuses: Mapping[str, Status]) -> str:
    """The node whose reason says most about what the pod lacks; the first of equals."""
    ranks = {plugin: rank for rank, plugin in enumerate(_SPECIFIC_PLUGINS)}
    return min(statuses, key=lambda node: ranks.get(statuses[node].plugin, len(ranks)))
