"""The reference evaluator: closures over a plan, counting exactly what cel-go counts.

An error is a value here (an `EvalError` that is returned, not raised), because the nodes after
it are still evaluated and counted. Only exceeding the cost limit is raised.
"""

from __future__ import annotations

from typing import cast

from allot.cel.access import MISSING, find, has_field, missing
from allot.cel.comprehensions import Unevaluated, append, bind, fold
from allot.cel.construction import make_list, make_map, make_message
from allot.cel.errors import NO_SUCH_OVERLOAD, EvalError
from allot.cel.frame import Closure, EvaluationFrame
from allot.cel.invocation import invoke
from allot.cel.plan import (
    Append,
    Bind,
    Choice,
    Const,
    ErrorNode,
    EvaluationPlan,
    Fixed,
    Fold,
    Global,
    Invoke,
    Local,
    Logical,
    MakeList,
    MakeMap,
    MakeMessage,
    Membership,
    Node,
    OptionalOr,
    Path,
    Presence,
)
from allot.cel.planner import member_key
from allot.cel.values import (
    NONE,
    Optional,
    Value,
    optional_of,
)


def interpretable(plan: EvaluationPlan) -> Closure:
    """The plan as a function from a frame to a value or an error."""
    return _compile(plan.root)


def _compile(node: Node) -> Closure:
    match node:
        case Const():
            return _constant(node.value)
        case ErrorNode():
            return _constant(EvalError(node.message))
        case Fixed():
            return _fixed(node)
        case Path():
            return _path(node)
        case Presence():
            return _presence(node)
        case Invoke():
            return invoke(node, [_compile(argument) for argument in node.arguments])
        case Logical():
            return _logical(node)
        case Membership():
            return _membership(node)
        case MakeList():
            return make_list(
                [(_compile(e), index in node.optional) for index, e in enumerate(node.elements)]
            )
        case MakeMap():
            return make_map([(_compile(k), _compile(v), o) for k, v, o in node.entries])
        case MakeMessage():
            fields = [(name, _compile(value), optional) for name, value, optional in node.fields]
            return make_message(node.type_name, fields, node.build)
        case Append():
            return append(node, _compile(node.element))
        case Fold():
            return fold(
                node,
                _compile(node.range),
                _compile(node.initial),
                _compile(node.condition),
                _compile(node.step),
                _compile(node.result),
            )
        case Bind():
            return bind(node.slot, _compile(node.initial), _compile(node.result))
        case OptionalOr():
            return _optional_or(node)


def _constant(value: Value) -> Closure:
    return lambda _frame: value


def _fixed(node: Fixed) -> Closure:
    compute = _compile(node.node)
    once = node.once

    def evaluate(frame: EvaluationFrame) -> Value:
        if once.is_known and frame.cost + once.cost <= frame.limit:
            frame.pay(once.cost)
            return once.value
        # Also if the limit is exceeded inside: the error belongs to the step that exceeds it.
        before = frame.cost
        value = compute(frame)
        once.remember(value, frame.cost - before)
        return value

    return evaluate


# --- paths ---


def _path(path: Path) -> Closure:
    resolve = _resolution(path)
    if isinstance(path.root, Choice):
        return resolve

    def evaluate(frame: EvaluationFrame) -> Value:
        value = resolve(frame)
        frame.pay(1)
        return value

    return evaluate


def _resolution(node: Node) -> Closure:
    """A path without what it costs to name its root: branches of a conditional do not count it."""
    if not isinstance(node, Path):
        return _compile(node)
    root = _root(node.root)
    if not node.accesses:
        return root
    keys = [(_resolution(access.key), access.optional) for access in node.accesses]

    def resolve(frame: EvaluationFrame) -> Value:
        value = root(frame)
        if type(value) is EvalError:
            return value
        is_optional = isinstance(value, Optional)
        if is_optional:
            held = cast("Optional", value)
            if not held.has_value:
                return NONE
            value = held.value
        for key_of, optional in keys:
            is_optional = is_optional or optional
            key = key_of(frame)
            failed = key if type(key) is EvalError else None
            found: Value = None
            if failed is None:
                try:
                    found = find(value, key)
                except EvalError as error:
                    failed = error
            if failed is not None:
                frame.pay(0 if is_optional else 1)
                return failed
            if found is MISSING:
                if is_optional:
                    return NONE
                frame.pay(1)
                return missing(value, key)
            frame.pay(1)
            value = found
        return optional_of(value) if is_optional else value

    return resolve


def _root(root: Local | Global | Choice | Node) -> Closure:
    match root:
        case Local():
            return _local(root.slot)
        case Global():
            name = root.name
            return lambda frame: frame.variables[name]
        case Choice():
            return _choice(root)
        case _:
            return _compile(root)


def _local(slot: int) -> Closure:
    def evaluate(frame: EvaluationFrame) -> Value:
        value = frame.slots[slot]
        if type(value) is Unevaluated:
            value = frame.slots[slot] = value.initial(frame)
        return value

    return evaluate


def _choice(choice: Choice) -> Closure:
    condition = _compile(choice.condition)
    when_true = _resolution(choice.when_true)
    when_false = _resolution(choice.when_false)

    def evaluate(frame: EvaluationFrame) -> Value:
        decision = condition(frame)
        if decision is True:
            return when_true(frame)
        if decision is False:
            return when_false(frame)
        return decision if isinstance(decision, EvalError) else EvalError(NO_SUCH_OVERLOAD)

    return evaluate


def _presence(node: Presence) -> Closure:
    resolve = _resolution(node.path)
    is_choice = isinstance(node.path.root, Choice)
    field = node.field

    def evaluate(frame: EvaluationFrame) -> Value:
        value = resolve(frame)
        if not is_choice:
            frame.pay(1)
        if type(value) is EvalError:
            return value
        try:
            return has_field(value, field)
        except EvalError as error:
            return error

    return evaluate


# --- operators ---


def _logical(node: Logical) -> Closure:
    terms = [_compile(term) for term in node.terms]
    decided_by = node.decided_by

    def evaluate(frame: EvaluationFrame) -> Value:
        failed: EvalError | None = None
        for term in terms:
            value = term(frame)
            if value is decided_by:
                return decided_by
            if failed is None and type(value) is not bool:
                failed = value if type(value) is EvalError else EvalError(NO_SUCH_OVERLOAD)
        return not decided_by if failed is None else failed

    return evaluate


def _membership(node: Membership) -> Closure:
    operand = _compile(node.value)
    allowed = node.allowed

    def evaluate(frame: EvaluationFrame) -> Value:
        value = operand(frame)
        return value if type(value) is EvalError else member_key(value) in allowed

    return evaluate


def _optional_or(node: OptionalOr) -> Closure:
    optional = _compile(node.optional)
    otherwise = _compile(node.otherwise)
    unwraps = node.unwraps

    def evaluate(frame: EvaluationFrame) -> Value:
        value = optional(frame)
        if type(value) is EvalError:
            return value
        if not isinstance(value, Optional):
            return EvalError(NO_SUCH_OVERLOAD)
        if value.has_value:
            return value.value if unwraps else value
        return otherwise(frame)

    return evaluate
