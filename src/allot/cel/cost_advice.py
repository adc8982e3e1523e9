"""Messages for expressions whose estimated cost is above the limit, with advice how to rewrite them."""

from __future__ import annotations

from typing import Final

from allot.cel.evaluator import COST_LIMIT
from allot.cel.program import UNBOUNDED_COST, Program

_SPLIT: Final = (
    "the length of a part from split() has no bound, so +, matches(), find(), lowerAscii() and other "
    "functions of such a part are estimated as if it were endless. Compare the part with ==, "
    "startsWith() or int(), or use matches(), find(), replace() or substring() on the whole "
    "attribute, whose length is bounded"
)
_LOOPS: Final = (
    "a loop in a loop multiplies the sizes of both lists. Use one loop, index the list, or write "
    "the alternatives with ||"
)
_OTHER: Final = (
    "the estimate assumes the longest value that an attribute may have. Use fewer calls on long "
    "texts, or compare with startsWith() or ==, which cost little"
)
_MACROS: Final = (".exists(", ".all(", ".map(", ".filter(", ".exists_one(", ".sortBy(")


def estimated_cost_text(cost: int) -> str:
    """`18`, `2,000,000`, or that there is no bound."""
    return "unbounded" if cost >= UNBOUNDED_COST // 100 else f"{cost:,}"


def cost_problem(program: Program) -> str | None:
    """Why the API server refuses the expression as too complex, and what to write instead."""
    excess = excess_cost(program)
    return f"too complex: {excess}" if excess is not None else None


def excess_cost(program: Program) -> str | None:
    """The estimated cost, the limit and what to write instead; None if the cost is within the limit."""
    if program.max_cost <= COST_LIMIT:
        return None
    return (
        f"the estimated cost is {estimated_cost_text(program.max_cost)}, the limit is "
        f"{COST_LIMIT:,}; {rewriting_advice(program.expression)}"
    )


def rewriting_advice(expression: str) -> str:
    """How to make an expression cheaper, by the functions it uses."""
    if ".split(" in expression:
        return _SPLIT
    if sum(expression.count(macro) for macro in _MACROS) > 1:
        return _LOOPS
    return _OTHER
