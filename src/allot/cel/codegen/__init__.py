"""The fast evaluators: a Python function per plan, one that counts costs and one that does not.

Generated code handles only evaluations without errors: on anything unexpected it raises, and the caller
evaluates again with the reference evaluator. That keeps it short, and errors are always the reference's.
For the same reason bindings need not be lazy where costs are not counted.

The code consists of names made from counters. Values from an expression (keys, strings,
numbers) are bound to such names and never written into the source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from allot.cel import costs
from allot.cel.codegen.calls import Calls
from allot.cel.codegen.loops import Loops
from allot.cel.codegen.statements import UnsupportedError
from allot.cel.inputs import parts
from allot.cel.plan import (
    Append,
    Bind,
    Choice,
    Const,
    EvaluationPlan,
    Fixed,
    Fold,
    Invoke,
    Logical,
    MakeList,
    MakeMap,
    Membership,
    Node,
    OptionalOr,
    Path,
    Presence,
)
from allot.cel.steps import STRIDE
from allot.cel.values import Value
from allot.deadline import Deadline

FastFunction = Callable[[Mapping[str, Value], Deadline], Value]
"""From variables to value."""

CountingFunction = Callable[[Mapping[str, Value], int, Deadline], tuple[Value, int]]
"""From variables and a limit to value and cost, or CostLimitError.

The limit may be detected late: at the end of a loop's step, or not at all.
"""

MAX_DEPTH: Final = 40
"""Deeper plans are evaluated by the reference: Python's own compiler has limits too."""

MAX_NODES: Final = 250
"""So are larger ones: Python takes some 30 microseconds for each, and cannot be interrupted."""


def fast_function(plan: EvaluationPlan) -> FastFunction | None:
    """The plan as a Python function; None if only the reference can evaluate it."""
    function: FastFunction | None = _function(plan, counts=False)
    return function


def counting_function(plan: EvaluationPlan) -> CountingFunction | None:
    """The plan as a function that also counts; None if only the reference can evaluate it."""
    function: CountingFunction | None = _function(plan, counts=True)
    return function


def _function(plan: EvaluationPlan, *, counts: bool) -> Any:
    generated = generate(plan, counts=counts)
    if generated is None:
        return None
    source, constants = generated
    namespace: dict[str, object] = dict(constants)
    try:
        code = compile(source, "<cel>", "exec")
    except (SyntaxError, RecursionError, MemoryError):
        return None
    exec(code, namespace)  # noqa: S102
    return namespace["program"]


def generate(plan: EvaluationPlan, *, counts: bool) -> tuple[str, dict[str, object]] | None:
    """The source of the function and the constants it needs; None if code cannot be generated."""
    if plan.depth > MAX_DEPTH or not _has_at_most(MAX_NODES, plan.root):
        return None
    generator = _Generator(counts)
    try:
        result = generator.value(plan.root)
    except UnsupportedError:
        return None
    generator.settle()
    body = "\n".join(generator.lines)
    if counts:
        start = f"def program(v, m, d):\n    c = 0\n    b = m if m < {STRIDE} else {STRIDE}\n"
        return f"{start}{body}\n    return {result}, c\n", generator.constants
    start = f"def program(v, d):\n    b = {STRIDE}\n"
    return f"{start}{body}\n    return {result}\n", generator.constants


def _has_at_most(count: int, root: Node) -> bool:
    waiting = [root]
    while waiting and count >= 0:
        count -= 1
        waiting += parts(waiting.pop())
    return count >= 0


class _Generator(Calls, Loops):
    """Writes a whole plan, node by node."""

    def value(self, node: Node) -> str:
        """Writes the code that computes the node and returns the name of its value."""
        match node:
            case Const():
                return self._bound(node.value)
            case Fixed():
                return self._fixed(node)
            case Path():
                if not isinstance(node.root, Choice):
                    self._owe(1)
                return self._path(node)
            case Presence():
                return self._presence(node)
            case Invoke():
                return self._invoke(node)
            case Logical():
                return self._logical(node)
            case Membership():
                return self._membership(node)
            case MakeList() if not node.optional:
                elements = [self.value(element) for element in node.elements]
                self._owe(costs.LIST)
                return self._assign(f"[{', '.join(elements)}]")
            case MakeMap():
                return self._make_map(node)
            case Append():
                element = self.value(node.element)
                self._owe(2 + costs.LIST)
                self._write(f"s{node.accumulator.slot}.append({element})")
                return f"s{node.accumulator.slot}"
            case Fold():
                return self._fold(node)
            case Bind():
                return self._bind(node)
            case OptionalOr():
                return self._optional_or(node)
            case _:
                raise UnsupportedError
