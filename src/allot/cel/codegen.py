"""The fast evaluators: a Python function per plan, one that counts costs and one that does not.

Generated code knows only the way without errors: whatever it does not expect raises, and the caller
evaluates again with the reference. That keeps it short, and right about errors by construction.
For the same reason bindings need not be lazy where costs do not matter.

The code consists of names made from counters. Everything that comes from an expression, be it a
key, a text or a number, is bound to such a name and never written into the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from allot.cel import costs
from allot.cel.access import follow, get, has_field
from allot.cel.constants import quickly_known
from allot.cel.frame import next_checkpoint
from allot.cel.inputs import parts
from allot.cel.plan import (
    Access,
    Append,
    Bind,
    Choice,
    Const,
    Fixed,
    Fold,
    Global,
    Invoke,
    Local,
    Logical,
    MakeList,
    MakeMap,
    Membership,
    Node,
    OptionalOr,
    Path,
    Plan,
    Presence,
)
from allot.cel.planner import member_key
from allot.cel.steps import STRIDE
from allot.cel.values import Optional, Value, from_key, iterate
from allot.cel.weights import weight_of_turn
from allot.deadline import Deadline

FastFunction = Callable[[Mapping[str, Value], Deadline], Value]
"""From variables to value."""

CountingFunction = Callable[[Mapping[str, Value], int, Deadline], tuple[Value, int]]
"""From variables and a limit to value and cost, or CostLimitError.

It may notice late that the limit was passed: at the end of a loop's step, or not at all.
"""

MAX_DEPTH: Final = 40
"""Deeper plans are left to the reference: Python's own compiler has limits too."""

MAX_NODES: Final = 250
"""So are larger ones: Python takes some 30 microseconds for each, and cannot be interrupted."""


class _Unsupported(Exception):  # noqa: N818
    """The plan does something rare that only the reference knows."""


class Unexpected(Exception):  # noqa: N818
    """Raised by generated code when a value is not what the happy way needs."""


def fast_function(plan: Plan) -> FastFunction | None:
    """The plan as a Python function; None if only the reference can evaluate it."""
    function: FastFunction | None = _function(plan, counts=False)
    return function


def counting_function(plan: Plan) -> CountingFunction | None:
    """The plan as a function that also counts; None if only the reference can evaluate it."""
    function: CountingFunction | None = _function(plan, counts=True)
    return function


def _function(plan: Plan, *, counts: bool) -> Any:
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


def generate(plan: Plan, *, counts: bool) -> tuple[str, dict[str, object]] | None:
    """The source of the function and the constants it needs; None if there can be none."""
    if plan.depth > MAX_DEPTH or not _has_at_most(MAX_NODES, plan.root):
        return None
    generator = _Generator(counts)
    try:
        result = generator.value(plan.root)
    except _Unsupported:
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


_COMPARISONS: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_SIMPLE_CLASSES: Final = (str, int)


class _Generator:
    def __init__(self, counts: bool) -> None:
        self._counts = counts
        self._owed = 0
        self._bindings: list[int] = []
        self.lines: list[str] = []
        self.constants: dict[str, object] = {}
        self._names: dict[int, str] = {}
        self._globals: dict[str, str] = {}
        self._indent = 1
        self._temporaries = 0

    # --- writing ---

    def _write(self, line: str) -> None:
        self.lines.append("    " * self._indent + line)

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"t{self._temporaries}"

    def _assign(self, expression: str) -> str:
        name = self._temporary()
        self._write(f"{name} = {expression}")
        return name

    def _bound(self, value: object) -> str:
        """The name of a constant. The constants keep every value alive, so that ids stay unique."""
        name = self._names.get(id(value))
        if name is None:
            name = f"k{len(self.constants)}"
            self._names[id(value)] = name
            self.constants[name] = value
        return name

    def _global(self, name: str) -> str:
        """The local name of a variable of the environment, which is looked up at the start."""
        local = self._globals.get(name)
        if local is None:
            local = self._globals[name] = f"g{len(self._globals)}"
            self.lines.insert(0, f"    {local} = v[{self._bound(name)}]")
        return local

    # --- costs ---

    def _owe(self, cost: int) -> None:
        """Note a cost that is known now. It is written when the code branches next."""
        self._owed += cost

    def settle(self) -> None:
        if self._counts and self._owed:
            self._write(f"c += {self._owed}")
        self._owed = 0

    def _ask(self, weight: int = 0) -> None:
        """Ask the deadline if enough was done since, by cost and by weight. `b` says when."""
        if weight:
            self._write(f"b -= {weight}")
        if self._counts:
            self._write("if c > b:")
            self._write(f"    b = {self._bound(next_checkpoint)}(c, m, d)")
        else:
            self._write("if b < 0:")
            self._write("    d()")
            self._write(f"    b = {STRIDE}")

    # --- nodes ---

    def value(self, node: Node) -> str:
        """Writes what computes the node and returns the name that then holds its value."""
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
                raise _Unsupported

    def _resolved(self, node: Node) -> str:
        """A value as a branch of a conditional or as a key: naming its root costs nothing."""
        return self._path(node) if isinstance(node, Path) else self.value(node)

    def _path(self, path: Path) -> str:
        match path.root:
            case Local():
                root = f"s{path.root.slot}"
                if path.root.slot in self._bindings:
                    self._use_binding(path.root.slot)
            case Global():
                root = self._global(path.root.name)
            case Choice():
                root = self._choice(path.root)
            case _:
                root = self.value(path.root)
        if not path.accesses:
            return root if root.isidentifier() else self._assign(root)
        if any(access.optional for access in path.accesses):
            return self._optional_path(root, path.accesses)
        for access in path.accesses:
            root = self._accessed(root, access)
        return self._assign(root)

    def _optional_path(self, root: str, accesses: tuple[Access, ...]) -> str:
        if self._counts and not all(isinstance(access.key, Const) for access in accesses):
            raise _Unsupported
        steps = ", ".join(f"({self.value(access.key)}, {access.optional})" for access in accesses)
        found, length = self._temporary(), self._temporary()
        self._write(f"{found}, {length} = {self._bound(follow)}({root}, ({steps},))")
        if self._counts:
            self._write(f"c += {length}")
        return found

    def _accessed(self, container: str, access: Access) -> str:
        """An expression for one step. A text as key raises by itself on all but maps."""
        self._owe(1)
        if isinstance(access.key, Const) and isinstance(access.key.value, str):
            return f"{container}[{self._bound(access.key.value)}]"
        key = self._resolved(access.key)
        if isinstance(access.key, Const) and _is_index(access.key.value):
            held = self._assign(container)
            return f"({held}[{key}] if type({held}) is list else {self._bound(get)}({held}, {key}))"
        return f"{self._bound(get)}({container}, {key})"

    def _choice(self, choice: Choice) -> str:
        condition = self._decision(choice.condition)
        result = self._temporary()
        self.settle()
        self._write(f"if {condition}:")
        self._branch(choice.when_true, result)
        self._write("else:")
        self._branch(choice.when_false, result)
        return result

    def _branch(self, node: Node, result: str) -> None:
        self._indent += 1
        self._write(f"{result} = {self._resolved(node)}")
        self.settle()
        self._indent -= 1

    def _decision(self, node: Node) -> str:
        """The name of a value that is certainly True or False."""
        name = self.value(node)
        if not _gives_bool(node):
            self._write(f"if type({name}) is not bool:")
            self._write(f"    raise {self._bound(Unexpected)}")
        return name

    def _presence(self, node: Presence) -> str:
        if not isinstance(node.path.root, Choice):
            self._owe(1)
        container = self._path(node.path)
        field = self._bound(node.field)
        return self._assign(
            f"{field} in {container} if type({container}) is dict else "
            f"{self._bound(has_field)}({container}, {field})"
        )

    def _logical(self, node: Logical) -> str:
        """A block that is left as soon as a term decides. Flat, however many terms there are."""
        result = self._temporary()
        self.settle()
        self._write(f"{result} = {node.decided_by}")
        self._write("while True:")
        self._indent += 1
        for term in node.terms:
            decision = self._decision(term)
            self.settle()
            self._write(f"if {decision if node.decided_by else f'not {decision}'}:")
            self._write("    break")
        self._write(f"{result} = {not node.decided_by}")
        self._write("break")
        self._indent -= 1
        return result

    def _membership(self, node: Membership) -> str:
        value = self.value(node.value)
        allowed = self._bound(node.allowed)
        return self._assign(
            f"({value} if type({value}) is str else {self._bound(member_key)}({value})) in {allowed}"
        )

    def _make_map(self, node: MakeMap) -> str:
        entries: list[str] = []
        if len({key.value for key, _, _ in node.entries if isinstance(key, Const)}) < len(
            node.entries
        ):
            raise _Unsupported  # the same key twice, or keys that are computed
        for key, value, optional in node.entries:
            if optional or not isinstance(key, Const) or not isinstance(key.value, str):
                raise _Unsupported
            entries.append(f"{self._bound(key.value)}: {self.value(value)}")
        self._owe(costs.MAP)
        return self._assign("{" + ", ".join(entries) + "}")

    def _fixed(self, node: Fixed) -> str:
        """A constant that is computed here, if that is cheap; else by the code, when it gets there."""
        known = quickly_known(node)
        if known is not None:
            self._owe(known.cost)
            return self._bound(known.value)
        once, result = self._bound(node.once), self._temporary()
        self.settle()
        self._write(f"if {once}.{'is_counted' if self._counts else 'is_value'}:")
        self._write(f"    {result} = {once}.value")
        if self._counts:
            self._write(f"    c += {once}.cost")
        self._write("else:")
        self._indent += 1
        if self._counts:
            before = self._assign("c")
            self._write(f"{result} = {self.value(node.node)}")
            self.settle()
            self._write(f"{once}.remember({result}, c - {before})")
        else:
            self._write(f"{result} = {self.value(node.node)}")
            self._write(f"{once}.remember({result})")
        self._indent -= 1
        return result

    # --- calls ---

    def _invoke(self, node: Invoke) -> str:
        match node.function:
            case "@not_strictly_false":
                self._owe(1)
                return self._assign(f"{self.value(node.arguments[0])} is not False")
            case "!_":
                self._owe(1)
                return self._assign(f"not {self._decision(node.arguments[0])}")
        arguments = [self.value(argument) for argument in node.arguments]
        cost_of = costs.call_cost(node.function, node.overload_id)
        if cost_of is None:
            self._owe(1)
        elif not costs.goes_by_result(cost_of):
            self._pay_for_call(cost_of, arguments, "None")
        passed = ["d", *arguments] if node.asks else arguments
        call = f"{self._bound(node.implementation)}({', '.join(passed)})"
        direct = self._direct(node, arguments)
        result = self._assign(f"{direct} else {call}" if direct else call)
        if cost_of is not None and costs.goes_by_result(cost_of):
            self._pay_for_call(cost_of, arguments, result)
        return result

    def _pay_for_call(self, cost_of: costs.Cost, arguments: list[str], result: str) -> None:
        if self._counts:
            values = "".join(f"{argument}, " for argument in arguments)
            self._write(f"c += {self._bound(cost_of)}(({values}), {result}, d)")
            self._ask()

    def _direct(self, node: Invoke, arguments: list[str]) -> str | None:
        """What Python does itself, where a constant tells which class is meant."""
        if node.on_text is not None:
            text = arguments[0]
            return f"{self._bound(node.on_text)}({text}) if type({text}) is str"
        for index, argument in enumerate(node.arguments):
            if not isinstance(argument, Const | Fixed) or len(arguments) != 2:
                continue
            known = quickly_known(argument)
            if known is None:
                continue
            kind = type(known.value)
            if kind not in _SIMPLE_CLASSES:
                continue
            other = arguments[1 - index]
            left, right = arguments
            test = f"if type({other}) is {kind.__name__}"
            if node.function in ("_==_", "_!=_"):
                return f"{left} {node.function[1:3]} {right} {test}"
            if node.function in _COMPARISONS:
                return f"{left} {_COMPARISONS[node.function]} {right} {test}"
            if node.function == "@in" and index == 0 and kind is str:
                return f"{left} in {right} if isinstance({right}, dict)"
        return None

    def _optional_or(self, node: OptionalOr) -> str:
        optional = self.value(node.optional)
        result = self._temporary()
        self.settle()
        self._write(f"if type({optional}) is not {self._bound(Optional)}:")
        self._write(f"    raise {self._bound(Unexpected)}")
        self._write(f"if {optional}.has_value:")
        self._write(
            f"    {result} = {optional}.value" if node.unwraps else f"    {result} = {optional}"
        )
        self._write("else:")
        self._indent += 1
        self._write(f"{result} = {self.value(node.otherwise)}")
        self.settle()
        self._indent -= 1
        return result

    # --- loops ---

    def _fold(self, node: Fold) -> str:
        values = self.value(node.range)
        accumulator = f"s{node.accumulator}"
        if node.collects is None:
            self._write(f"{accumulator} = {self.value(node.initial)}")
        else:
            self._write(f"{accumulator} = {node.collects.__name__}()")
        self.settle()
        if node.variable2 is None:
            self._write(f"for s{node.variable} in {self._bound(iterate)}({values}):")
        else:
            pairs = f"{self._bound(_pairs)}({values})"
            self._write(f"for s{node.variable}, s{node.variable2} in {pairs}:")
        self._indent += 1
        if not (isinstance(node.condition, Const) and node.condition.value is True):
            condition = self.value(node.condition)
            self.settle()
            self._write(f"if not {condition}:")
            self._write("    break")
        self._write(f"{accumulator} = {self.value(node.step)}")
        self.settle()
        self._ask(weight_of_turn(node))
        self._indent -= 1
        return self.value(node.result)

    def _bind(self, node: Bind) -> str:
        """Computed at once; if costs count, by a function that is called when it is first used."""
        if not self._counts:
            self._write(f"s{node.slot} = {self.value(node.initial)}")
            return self.value(node.result)
        self.settle()
        self._write(f"s{node.slot} = {self._bound(_UNUSED)}")
        self._write(f"def f{node.slot}():")
        self._indent += 1
        changed = ["c", "b", *(f"s{slot}" for slot in self._bindings)]
        self._write(f"nonlocal {', '.join(changed)}")
        initial = self.value(node.initial)
        self.settle()
        self._write(f"return {initial}")
        self._indent -= 1
        self._bindings.append(node.slot)
        result = self.value(node.result)
        self._bindings.pop()
        return result

    def _use_binding(self, slot: int) -> None:
        self._write(f"if s{slot} is {self._bound(_UNUSED)}:")
        self._write(f"    s{slot} = f{slot}()")


_UNUSED: Final = object()
"""What a binding holds until it is used."""


def _is_index(key: Value) -> bool:
    return type(key) is int and key >= 0


def _pairs(values: Value) -> Iterator[tuple[Value, Value]]:
    """Index and element, or key and value."""
    if isinstance(values, dict):
        return ((from_key(key), value) for key, value in values.items())
    return enumerate(iterate(values))


def _gives_bool(node: Node) -> bool:
    match node:
        case Logical() | Presence() | Membership():
            return True
        case Const():
            return type(node.value) is bool
        case Fixed():
            return _gives_bool(node.node)
        case Invoke():
            return node.gives_bool
        case _:
            return False
