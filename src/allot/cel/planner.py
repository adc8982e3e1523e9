"""The planner: from checked expressions to plans. Constants are computed here; invalid ones are compile errors."""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from allot.cel import types
from allot.cel.checker import Checked, ResolvedCall
from allot.cel.declarations import Implementation
from allot.cel.environment import Environment
from allot.cel.errors import NO_SUCH_OVERLOAD, CelCompileError, EvalError
from allot.cel.folding import fold_constants
from allot.cel.library.conversions import CONVERSIONS
from allot.cel.library.regexes import Regex, RegexError, compiled
from allot.cel.plan import (
    Access,
    Append,
    Bind,
    Choice,
    Const,
    ErrorNode,
    EvaluationPlan,
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
from allot.cel.syntax import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Constant,
    Expression,
    Identifier,
    ListLiteral,
    MapLiteral,
    MessageLiteral,
    Select,
    depth,
)
from allot.cel.values import CelList, Uint, Value, elements, is_key, to_key
from allot.deadline import Deadline


def plan(checked: Checked, environment: Environment) -> EvaluationPlan:
    """The plan of the expression; CelCompileError if a constant in it is invalid."""
    planner = _Planner(checked, environment)
    root = fold_constants(planner.node(checked.root))
    return EvaluationPlan(root, planner.slots, depth(checked.root))


class _Planner:
    def __init__(self, checked: Checked, environment: Environment) -> None:
        self._checked = checked
        self._environment = environment
        self._scopes: list[tuple[str, int]] = []
        self.slots = 0

    def node(self, expression: Expression) -> Node:
        match expression:
            case Constant():
                return Const(expression.value)
            case Identifier():
                return self._named(expression, expression.name)
            case Select():
                return self._select(expression)
            case Call():
                return self._call(expression)
            case ListLiteral():
                return self._list(expression)
            case MapLiteral():
                return self._map(expression)
            case MessageLiteral():
                return self._message(expression)
            case Comprehension():
                return self._comprehension(expression)

    # --- names and paths ---

    def _named(self, expression: Expression, written: str) -> Node:
        name = self._checked.names.get(expression)
        if name is None:
            container = self._environment.container
            return ErrorNode(f"undeclared reference to '{written}' (in container '{container}')")
        if name.startswith("."):
            if name[1:] in self._environment.variables:
                return Path(Global(name[1:]))
            return Const(self._environment.type_names[name[1:]])
        return Path(Local(self._slot(name)))

    def _slot(self, name: str) -> int:
        for known, slot in reversed(self._scopes):
            if known == name:
                return slot
        raise KeyError(name)

    def _enter(self, name: str) -> int:
        """A slot of its own for every variable: a binding may be evaluated in an inner scope."""
        slot = self.slots
        self._scopes.append((name, slot))
        self.slots += 1
        return slot

    def _leave(self, names: int = 1) -> None:
        del self._scopes[len(self._scopes) - names :]

    def _select(self, expression: Select) -> Node:
        if expression in self._checked.names:
            return self._named(expression, expression.field)
        operand = self.node(expression.operand)
        if expression.test_only:
            path = operand if isinstance(operand, Path) else Path(operand)
            return Presence(path, expression.field)
        return _accessed(operand, Access(Const(expression.field), optional=False))

    # --- calls ---

    def _call(self, call: Call) -> Node:
        match call.function:
            case "_?._" | "_[?_]" | "_[_]" if call.target is None:
                operand, key = map(self.node, call.arguments)
                return _accessed(operand, Access(key, optional=call.function != "_[_]"))
            case "_&&_":
                return self._logical(call, decided_by=False)
            case "_||_":
                return self._logical(call, decided_by=True)
            case "_?_:_":
                condition, when_true, when_false = map(self.node, call.arguments)
                return Path(Choice(condition, when_true, when_false))
        return self._function_call(call)

    def _logical(self, call: Call, *, decided_by: bool) -> Node:
        terms: list[Node] = []
        for term in map(self.node, call.arguments):
            # Nested chains are one chain: the order of evaluation is the same.
            if isinstance(term, Logical) and term.decided_by is decided_by:
                terms += term.terms
            else:
                terms.append(term)
        return Logical(decided_by, tuple(terms))

    def _function_call(self, call: Call) -> Node:
        resolved = self._checked.calls.get(call)
        if resolved is None:
            return ErrorNode(f"{NO_SUCH_OVERLOAD}: {call.function}")
        expressions = call.arguments
        if resolved.on_target and call.target is not None:
            expressions = (call.target, *expressions)
        arguments = tuple(map(self.node, expressions))
        name = resolved.function.name
        if name in ("or", "orValue") and len(arguments) == 2:
            return OptionalOr(arguments[0], arguments[1], unwraps=name == "orValue")
        ids = resolved.overload_ids
        overload_id = ids[0] if len(ids) == 1 else ""
        binding = resolved.function.bound(ids)
        invoke = Invoke(
            name,
            overload_id,
            arguments,
            binding.call,
            absorbs_errors=name == "@not_strictly_false",
            stops_at_errors=len(arguments) > 2,
            gives_bool=bool(ids) and _gives_bool(resolved),
            takes_deadline=binding.takes_deadline,
        )
        return self._optimized(invoke)

    def _optimized(self, invoke: Invoke) -> Node:
        constants = [argument for argument in invoke.arguments if isinstance(argument, Const)]
        if invoke.function in CONVERSIONS and len(constants) == 1:
            return _converted(invoke, constants[0].value)
        if invoke.overload_id == "in_list" and isinstance(invoke.arguments[1], Const):
            return _membership(invoke, cast("CelList", invoke.arguments[1].value))
        if invoke.function in _REGEX_FUNCTIONS and isinstance(invoke.arguments[1], Const):
            pattern = invoke.arguments[1].value
            if isinstance(pattern, str):
                return _with_compiled_regex(invoke, pattern)
        return invoke

    # --- literals ---

    def _list(self, expression: ListLiteral) -> Node:
        nodes = tuple(map(self.node, expression.elements))
        constants = [node.value for node in nodes if isinstance(node, Const)]
        if len(constants) == len(nodes) and not expression.optional:
            return Const(constants)
        return MakeList(nodes, expression.optional)

    def _map(self, expression: MapLiteral) -> Node:
        entries = tuple(
            (self.node(entry.key), self.node(entry.value), entry.optional)
            for entry in expression.entries
        )
        constant: dict[Value, Value] = {}
        for key, value, optional in entries:
            if not (isinstance(key, Const) and isinstance(value, Const)) or optional:
                return MakeMap(entries)
            if not is_key(key.value):
                return MakeMap(entries)
            stored = to_key(key.value)
            constant.pop(stored, None)
            constant[stored] = value.value
        return Const(constant)

    def _message(self, expression: MessageLiteral) -> Node:
        name = self._checked.names.get(expression)
        if name is None:
            return ErrorNode(f"unknown type: {expression.type_name}")
        fields = tuple(
            (field.field, self.node(field.value), field.optional) for field in expression.fields
        )
        return MakeMessage(name, fields, self._environment.messages[name].build)

    # --- loops ---

    def _comprehension(self, loop: Comprehension) -> Node:
        if loop.is_bind:
            initial = self.node(loop.initial)
            slot = self._enter(loop.accumulator)
            result = self.node(loop.result)
            self._leave()
            return Bind(slot, initial, result)
        over = self.node(loop.range)
        initial = self.node(loop.initial)
        accumulator = self._enter(loop.accumulator)
        variable = self._enter(loop.variable)
        variable2 = None if loop.variable2 is None else self._enter(loop.variable2)
        condition = self.node(loop.condition)
        step = self._step(loop)
        self._leave(1 if variable2 is None else 2)
        result = self.node(loop.result)
        self._leave()
        collects = _collects(loop)
        return Fold(
            over, variable, variable2, accumulator, initial, collects, condition, step, result
        )

    def _step(self, loop: Comprehension) -> Node:
        """The step; where it appends to the accumulator, that is done in place."""
        step = loop.step
        if _collects(loop) is list and isinstance(step, Call):
            if step.function == "_?_:_":
                condition, when_true, _ = step.arguments
                accumulator = Local(self._slot(ACCUMULATOR))
                appended = self._append(cast("Call", when_true))
                return Path(Choice(self.node(condition), appended, Path(accumulator)))
            return self._append(step)
        return self.node(step)

    def _append(self, sum_: Call) -> Append:
        (element,) = cast("ListLiteral", sum_.arguments[1]).elements
        return Append(Local(self._slot(ACCUMULATOR)), self.node(element))


_REGEX_FUNCTIONS = frozenset({"matches", "find", "findAll"})


def _collects(loop: Comprehension) -> type[list[Value] | dict[Value, Value]] | None:
    """The container that a list or map macro starts with. Only these macros start with an empty one."""
    if loop.accumulator != ACCUMULATOR:
        return None
    match loop.initial:
        case ListLiteral(elements=()):
            return list
        case MapLiteral(entries=()):
            return dict
        case _:
            return None


def _gives_bool(call: ResolvedCall) -> bool:
    return all(
        overload.result == types.BOOL
        for overload in call.function.overloads
        if overload.id in call.overload_ids
    )


def _accessed(operand: Node, access: Access) -> Path:
    if isinstance(operand, Path):
        return Path(operand.root, (*operand.accesses, access))
    return Path(operand, (access,))


def _instantiation_failed(reason: str) -> CelCompileError:
    return CelCompileError(f"program instantiation failed: {reason}", internal=True)


def _converted(invoke: Invoke, value: Value) -> Const:
    try:
        return Const(invoke.implementation(value))
    except EvalError as error:
        raise _instantiation_failed(error.message) from None


def member_key(value: Value) -> Value:
    """The value as key of a set of constants. True differs from 1, but 1 equals 1.0."""
    return value if isinstance(value, bytes) else to_key(value)


def _membership(invoke: Invoke, allowed: CelList) -> Node:
    values = elements(allowed)
    if not values:
        return Const(False)
    if not all(isinstance(value, bool | bytes | float | int | str | Uint) for value in values):
        return invoke
    return Membership(invoke.arguments[0], frozenset(map(member_key, values)))


def _with_compiled_regex(invoke: Invoke, pattern: str) -> Node:
    try:
        regex = compiled(pattern)
    except RegexError as error:
        raise _instantiation_failed(str(error)) from None
    if invoke.function == "findAll":
        return replace(
            invoke, implementation=_all_found(regex), stops_at_errors=True, takes_deadline=True
        )
    search: Implementation = {"matches": regex.is_in, "find": regex.first}[invoke.function]

    def call(text: Value, _pattern: Value) -> Value:
        if type(text) is not str:
            raise EvalError(NO_SUCH_OVERLOAD)
        return search(text)

    return replace(
        invoke, implementation=call, stops_at_errors=True, on_text=search, takes_deadline=False
    )


def _all_found(regex: Regex) -> Implementation:
    def call(deadline: Deadline, text: Value, _pattern: Value, *limits: Value) -> Value:
        if type(text) is not str:
            raise EvalError(NO_SUCH_OVERLOAD)
        for limit in limits:
            if type(limit) is not int:
                raise EvalError(NO_SUCH_OVERLOAD)
        return regex.all(deadline, text, *cast("tuple[int, ...]", limits))

    return call
