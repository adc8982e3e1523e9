"""CEL, the expression language of device selectors and derived attributes.

    text → `parser` → syntax tree → `checker` → types and overloads → `planner` → plan
                                        └→ `estimate` → cost            ├→ `interpreter`: exact
                                                                        └→ `codegen`: fast

`compile_selector` and `compile_derived` return programs, `cel_device` returns the input they are
evaluated on. Everything here is a function of its arguments; the caches are bounded and shared
safely between threads.

An evaluation may take a deadline; `steps` defines how often it is checked. Constant parts of a plan
are marked by `folding` and evaluated once per program.
"""

from allot.cel.device import AttributeValue, CelDevice, cel_device
from allot.cel.errors import CelCompileError, CelError, CelEvaluationError, Issue
from allot.cel.evaluator import COST_LIMIT, EvaluationResult
from allot.cel.kubernetes import Origin
from allot.cel.program import (
    UNBOUNDED_COST,
    DerivedAttribute,
    Program,
    Selector,
    Use,
    compile_derived,
    compile_selector,
)

__all__ = [
    "COST_LIMIT",
    "UNBOUNDED_COST",
    "AttributeValue",
    "CelCompileError",
    "CelDevice",
    "CelError",
    "CelEvaluationError",
    "DerivedAttribute",
    "EvaluationResult",
    "Issue",
    "Origin",
    "Program",
    "Selector",
    "Use",
    "cel_device",
    "compile_derived",
    "compile_selector",
]
