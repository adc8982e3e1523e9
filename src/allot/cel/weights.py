"""How much a loop does in one turn, for asking the deadline often enough whatever that costs."""

from __future__ import annotations

from allot.cel.inputs import parts
from allot.cel.plan import Fixed, Fold, Invoke, Node
from allot.cel.steps import FEW


def weight_of_turn(loop: Fold) -> int:
    """The parts of the expression that a turn evaluates. Inner loops count their own turns."""
    total = 1
    waiting: list[Node] = [loop.condition, loop.step]
    while waiting:
        node = waiting.pop()
        total += FEW if isinstance(node, Invoke) and node.asks else 1
        if isinstance(node, Fixed):
            continue  # evaluated once
        if isinstance(node, Fold):
            waiting += (node.range, node.initial, node.result)
        else:
            waiting += parts(node)
    return total
