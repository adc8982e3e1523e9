"""Static cost estimation: the cost an expression may have on any device.

The paths of an expression are followed through the declarations to find the maximum size of each value.
A size without a bound is the largest possible one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from allot.cel import costs
from allot.cel.call_estimates import Argument, CallEstimate, estimate_call
from allot.cel.checker import Checked
from allot.cel.device_sizes import size_at
from allot.cel.sizes import NOTHING, ONE, UNKNOWN, ZERO, Range, exactly
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
)
from allot.cel.types import Type, TypeKind, is_optional

Place = tuple[str, ...]
"""Where in the declarations a value comes from: a variable, then fields, @keys, @values, @items."""


@dataclass(frozen=True, slots=True)
class EntrySizes:
    """The sizes of the entries of a list or map."""

    kind: TypeKind
    key: Range
    value: Range

    def union(self, other: EntrySizes | None) -> EntrySizes | None:
        if other is None:
            return None
        return EntrySizes(self.kind, self.key.union(other.key), self.value.union(other.value))


@dataclass(frozen=True, slots=True)
class _Variable:
    place: Place
    size: Range | None
    entries: EntrySizes | None


SizeAt = Callable[[Place], Range | None]
"""The size of the value at a place of the declarations; None if it is unknown."""


def estimated_cost(checked: Checked, size_at: SizeAt = size_at) -> int:
    """The estimated maximum cost of the expression; `sizes.MAX` without a bound."""
    return _Estimator(checked, size_at).cost(checked.root).high


class _Estimator:
    def __init__(self, checked: Checked, size_at: SizeAt) -> None:
        self._checked = checked
        self._size_at = size_at
        self._places: dict[Expression, Place] = {}
        self._sizes: dict[Expression, Range] = {}
        self._entries: dict[Expression, EntrySizes] = {}
        self._variables: dict[str, list[_Variable]] = {}

    def cost(self, node: Expression) -> Range:
        match node:
            case Constant():
                return ZERO
            case Identifier():
                return self._identifier(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case MessageLiteral():
                total = exactly(costs.MESSAGE)
                for field in node.fields:
                    total = total.plus(self.cost(field.value))
                return total
            case Comprehension():
                return self._bind(node) if node.is_bind else self._loop(node)

    # --- names ---

    def _identifier(self, node: Identifier) -> Range:
        variable = self._variable(node)
        self._places[node] = variable.place if variable else (node.name,)
        return ONE

    def _variable(self, node: Expression) -> _Variable | None:
        if isinstance(node, Identifier) and self._variables.get(node.name):
            return self._variables[node.name][-1]
        return None

    def _place(self, node: Expression) -> Place:
        variable = self._variable(node)
        return variable.place if variable else self._places.get(node, ())

    def _select(self, node: Select) -> Range:
        if node in self._checked.names:
            self._places[node] = (self._checked.names[node].removeprefix("."),)
            return ONE
        cost = self.cost(node.operand)
        if node.test_only:
            return cost
        if self._type(node.operand).kind in (TypeKind.MAP, TypeKind.STRUCT, TypeKind.PARAMETER):
            cost = cost.plus(ONE)
        self._places[node] = (*self._place(node.operand), node.field)
        return cost

    def _type(self, node: Expression) -> Type:
        return self._checked.types[node]

    # --- calls ---

    def _call(self, node: Call) -> Range:
        if node.function == "dyn" and len(node.arguments) == 1:
            cost = self.cost(node.arguments[0]).plus(ONE)
            self._copy_sizes(node, node.arguments[0])
            return cost
        argument_costs = [self.cost(argument) for argument in node.arguments]
        arguments = [self._argument(argument) for argument in node.arguments]
        if node.function == "_?._":
            self._set_size(node, self._size(node))
            return argument_costs[0].plus(ONE)
        resolved = self._checked.calls[node]
        target: Argument | None = None
        cost = ZERO
        if resolved.on_target and node.target is not None:
            cost = self.cost(node.target)
            target = self._argument(node.target)
        calls = NOTHING
        result_size: Range | None = None
        for overload_id in resolved.overload_ids:
            estimate = self._overload(
                node, resolved.function.name, overload_id, target, arguments, argument_costs
            )
            calls = calls.union(estimate.cost)
            if estimate.result_size is not None:
                known = result_size or estimate.result_size
                result_size = known.union(estimate.result_size)
            if overload_id in ("index_list", "index_map"):
                container = node.arguments[0]
                entries = self._entry_sizes(container)
                result_size = None if entries is None else entries.value
                step = "@items" if overload_id == "index_list" else "@values"
                self._places[node] = (*self._place(container), step)
            if result_size is None:
                result_size = self._size(node)
        self._set_size(node, result_size)
        return cost.plus(calls)

    def _argument(self, node: Expression) -> Argument:
        place = self._place(node)
        if place and place[0] == ACCUMULATOR:
            place = ()
        value = node.value if isinstance(node, Constant) else None
        element_size = self._size_at((*place, "@items")) if place else None
        return Argument(self._type(node), self._size(node), value, element_size)

    def _overload(
        self,
        node: Call,
        function: str,
        overload_id: str,
        target: Argument | None,
        arguments: list[Argument],
        argument_costs: list[Range],
    ) -> CallEstimate:
        match overload_id:
            case "logical_and" | "logical_or":
                left, right = argument_costs
                return CallEstimate(Range(left.low, left.plus(right).high))
            case "conditional":
                return self._conditional(node, arguments, argument_costs)
            case "add_string" | "add_bytes" | "add_list":
                entries = self._entry_sizes(node.arguments[0])
                if entries is not None:
                    self._set_entries(node, entries.union(self._entry_sizes(node.arguments[1])))
        estimate = estimate_call(function, overload_id, target, arguments)
        cost = estimate.cost
        for argument_cost in argument_costs:
            cost = cost.plus(argument_cost)
        return CallEstimate(cost, estimate.result_size)

    def _conditional(
        self, node: Call, arguments: list[Argument], argument_costs: list[Range]
    ) -> CallEstimate:
        size = arguments[1].size_or_unknown.union(arguments[2].size_or_unknown)
        entries = self._entry_sizes(node.arguments[1])
        if entries is not None:
            self._set_entries(node, entries.union(self._entry_sizes(node.arguments[2])))
        condition, when_true, when_false = argument_costs
        return CallEstimate(condition.plus(when_true.union(when_false)), size)

    # --- literals ---

    def _list(self, node: ListLiteral) -> Range:
        cost = exactly(costs.LIST)
        size = NOTHING if node.elements else ZERO
        for element in node.elements:
            cost = cost.plus(self.cost(element))
            size = size.union(self._size_or_unknown(element))
        self._set_entries(node, EntrySizes(TypeKind.LIST, ONE, size))
        return cost

    def _map(self, node: MapLiteral) -> Range:
        cost = exactly(costs.MAP)
        key = value = NOTHING if node.entries else ZERO
        for entry in node.entries:
            cost = cost.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.union(self._size_or_unknown(entry.key))
            value = value.union(self._size_or_unknown(entry.value))
        self._set_entries(node, EntrySizes(TypeKind.MAP, key, value))
        return cost

    # --- loops ---

    def _bind(self, node: Comprehension) -> Range:
        cost = self.cost(node.range).plus(self.cost(node.initial))
        self._push(node.accumulator, self._bound(node.initial))
        cost = cost.plus(self.cost(node.result))
        self._copy_sizes(node, node.result)
        self._variables[node.accumulator].pop()
        return cost

    def _bound(self, node: Expression) -> _Variable:
        return _Variable(self._place(node), self._size(node), self._entry_sizes(node))

    def _push(self, name: str, variable: _Variable) -> None:
        self._variables.setdefault(name, []).append(variable)

    def _loop(self, node: Comprehension) -> Range:
        cost = self.cost(node.range).plus(self.cost(node.initial))
        self._push(node.accumulator, self._bound(node.initial))
        names = self._push_loop_variables(node)
        each = self.cost(node.condition)
        each = self.cost(node.step).plus(each)
        for name in names:
            self._variables[name].pop()
        cost = cost.plus(self.cost(node.result))
        self._variables[node.accumulator].pop()
        count = self._size_or_unknown(node.range)
        cost = cost.plus(count.times(each))
        match node.initial:
            case Constant():
                self._set_size(node, self._size(node.initial))
            case ListLiteral() | MapLiteral():
                self._set_size(node, count)
                self._set_entries(node, self._entry_sizes(node.step))
            case _:
                pass
        return cost

    def _push_loop_variables(self, node: Comprehension) -> list[str]:
        entries = self._entry_sizes(node.range)
        place = self._place(node.range)
        kind = entries.kind if entries else self._type(node.range).kind
        key = _Variable(
            (*place, "@indices" if kind is TypeKind.LIST else "@keys"),
            entries.key if entries else None,
            None,
        )
        value = _Variable(
            (*place, "@items" if kind is TypeKind.LIST else "@values"),
            entries.value if entries else None,
            None,
        )
        if node.variable2 is not None:
            self._push(node.variable, key)
            self._push(node.variable2, value)
            return [node.variable, node.variable2]
        self._push(node.variable, value if kind is TypeKind.LIST else key)
        return [node.variable]

    # --- sizes ---

    def _size(self, node: Expression) -> Range | None:
        if node in self._sizes:
            return self._sizes[node]
        size = _literal_size(node)
        if size is not None:
            return size
        size = self._size_at(self._place(node))
        if size is not None:
            self._sizes[node] = size
            return size
        if is_scalar(self._type(node)):
            return ONE
        variable = self._variable(node)
        return variable.size if variable else None

    def _size_or_unknown(self, node: Expression) -> Range:
        return self._size(node) or UNKNOWN

    def _set_size(self, node: Expression, size: Range | None) -> None:
        if size is not None:
            self._sizes[node] = size

    def _set_entries(self, node: Expression, entries: EntrySizes | None) -> None:
        if entries is not None:
            self._entries[node] = entries

    def _copy_sizes(self, node: Expression, source: Expression) -> None:
        self._set_size(node, self._size(source))
        self._set_entries(node, self._entry_sizes(source))

    def _entry_sizes(self, node: Expression) -> EntrySizes | None:
        if node in self._entries:
            return self._entries[node]
        variable = self._variable(node)
        return variable.entries if variable else None


def _literal_size(node: Expression) -> Range | None:
    match node:
        case Constant(value=str() | bytes() as value):
            return exactly(len(value))
        case Constant():
            return ONE
        case ListLiteral():
            return exactly(len(node.elements))
        case MapLiteral():
            return exactly(len(node.entries))
        case _:
            return None


_SCALARS = frozenset(
    {
        TypeKind.BOOL,
        TypeKind.DOUBLE,
        TypeKind.DURATION,
        TypeKind.INT,
        TypeKind.TIMESTAMP,
        TypeKind.UINT,
    }
)


def is_scalar(type_: Type) -> bool:
    """Whether all values of a type have the size 1."""
    if is_optional(type_) and type_.parameters:
        return is_scalar(type_.parameters[0])
    return type_.kind in _SCALARS
