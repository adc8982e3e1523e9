"""The work of one loop iteration, so that the deadline is checked often enough even without cost."""

from __future__ import annotations

from allot.cel.inputs import parts
from allot.cel.plan import Fixed, Fold, Invoke, Node
from allot.cel.steps import FEW


def weight_of_iteration(loop: Fold) -> int:
    """The number of nodes that an iteration evaluates. Inner loops count their own iterations."""
    total = 1
    waiting: list[Node] = [loop.condition, loop.step]
    while waiting:
        node = waiting.pop()
        total += FEW if isinstance(node, Invoke) and node.takes_deadline else 1
        if isinstance(node, Fixed):
            continue  # evaluated once
        if isinstance(node, Fold):
            waiting += (node.range, node.initial, node.result)
        else:
            waiting += parts(node)
    return total
