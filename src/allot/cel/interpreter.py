"""The reference evaluator: closures over a plan, counting exactly what cel-go counts.

An error is a value here (an `EvalError` that is returned, not raised), because the nodes after
it are still evaluated and counted. Only exceeding the cost limit is raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from allot.cel import costs
from allot.cel.access import MISSING, find, has_field, missing
from allot.cel.construction import make_list, make_map, make_message
from allot.cel.errors import NO_SUCH_OVERLOAD, EvalError
from allot.cel.frame import Closure, EvaluationFrame
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
    is_list,
    iterate,
    optional_of,
)
from allot.cel.weights import weight_of_iteration


def interpretable(plan: EvaluationPlan) -> Closure:
    """The plan as a function from a frame to a value or an error."""
    return _compile(plan.root)


class _Unevaluated:
    """The unevaluated value of a binding."""

    __slots__ = ("initial",)

    def __init__(self, initial: Closure) -> None:
        self.initial = initial


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
            return _invoke(node)
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
            return _append(node)
        case Fold():
            return _fold(node)
        case Bind():
            return _bind(node)
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
        if type(value) is _Unevaluated:
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


# --- calls ---


def _invoke(node: Invoke) -> Closure:
    arguments = [_compile(argument) for argument in node.arguments]
    call = _Call(node)
    if node.stops_at_errors or not arguments:
        return _invoke_in_turn(arguments, call)
    if len(arguments) == 1:
        return _invoke_unary(arguments[0], call, node.absorbs_errors)
    left, right = arguments
    return _invoke_binary(left, right, call)


class _Call:
    """A call with evaluated arguments. Its cost is counted before the call if it is known then."""

    __slots__ = ("_cost_of", "_implementation", "_is_paid_first", "_takes_deadline")

    def __init__(self, node: Invoke) -> None:
        self._implementation = node.implementation
        self._takes_deadline = node.takes_deadline
        self._cost_of = costs.call_cost(node.function, node.overload_id)
        self._is_paid_first = self._cost_of is None or not costs.goes_by_result(self._cost_of)

    def __call__(
        self, frame: EvaluationFrame, values: Sequence[Value], failed: EvalError | None = None
    ) -> Value:
        if self._is_paid_first:
            self._pay(frame, values, failed)
        result: Value = failed
        if failed is None:
            try:
                if self._takes_deadline:
                    result = self._implementation(frame.deadline, *values)
                else:
                    result = self._implementation(*values)
            except EvalError as error:
                result = error
        if not self._is_paid_first:
            self._pay(frame, values, result)
        return result

    def _pay(self, frame: EvaluationFrame, values: Sequence[Value], result: Value) -> None:
        cost_of = self._cost_of
        frame.pay(1 if cost_of is None else cost_of(values, result, frame.deadline))


def _invoke_unary(argument: Closure, call: _Call, absorbs_errors: bool) -> Closure:
    def evaluate(frame: EvaluationFrame) -> Value:
        value = argument(frame)
        if type(value) is EvalError and not absorbs_errors:
            return call(frame, (value,), value)
        return call(frame, (value,))

    return evaluate


def _invoke_binary(left_of: Closure, right_of: Closure, call: _Call) -> Closure:
    def evaluate(frame: EvaluationFrame) -> Value:
        left = left_of(frame)
        right = right_of(frame)
        if type(left) is EvalError:
            return call(frame, (left, right), left)
        if type(right) is EvalError:
            return call(frame, (left, right), right)
        return call(frame, (left, right))

    return evaluate


def _invoke_in_turn(arguments: list[Closure], call: _Call) -> Closure:
    last = len(arguments) - 1

    def evaluate(frame: EvaluationFrame) -> Value:
        values: list[Value] = []
        failed: EvalError | None = None
        for index, argument in enumerate(arguments):
            value = argument(frame)
            values.append(value)
            if type(value) is EvalError:
                if index < last:
                    return value
                failed = value
        return call(frame, values, failed)

    return evaluate


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


# --- loops ---


def _append(node: Append) -> Closure:
    slot = node.accumulator.slot
    element = _compile(node.element)

    def evaluate(frame: EvaluationFrame) -> Value:
        accumulator = frame.slots[slot]
        frame.pay(1)
        value = element(frame)
        frame.pay(costs.LIST)
        frame.pay(1)
        if type(accumulator) is EvalError:
            return accumulator
        if type(value) is EvalError:
            return value
        cast("list[Value]", accumulator).append(value)
        return accumulator

    return evaluate


def _bind(node: Bind) -> Closure:
    unevaluated = _Unevaluated(_compile(node.initial))
    result = _compile(node.result)
    slot = node.slot

    def evaluate(frame: EvaluationFrame) -> Value:
        frame.slots[slot] = unevaluated
        return result(frame)

    return evaluate


def _fold(node: Fold) -> Closure:
    over = _compile(node.range)
    initial = _compile(node.initial)
    condition = _compile(node.condition)
    step = _compile(node.step)
    result = _compile(node.result)
    accumulator, variable, variable2 = node.accumulator, node.variable, node.variable2
    collects = node.collects
    weight = weight_of_iteration(node)

    def evaluate(frame: EvaluationFrame) -> Value:
        values = over(frame)
        if type(values) is EvalError:
            return values
        slots = frame.slots
        start = initial(frame)
        try:
            items = iterate(values)
        except EvalError as error:
            return error
        slots[accumulator] = start if collects is None else collects()
        by_index = variable2 is not None and is_list(values)
        for index, item in enumerate(items):
            if variable2 is None:
                slots[variable] = item
            elif by_index:
                slots[variable], slots[variable2] = index, item
            else:
                slots[variable] = item
                slots[variable2] = find(values, item)
            if condition(frame) is False:
                break
            slots[accumulator] = step(frame)
            frame.checkpoint -= weight
            if frame.cost > frame.checkpoint:
                frame.check()
        return result(frame)

    return evaluate
