"""Macros: calls that are rewritten while parsing.

A macro may decline (None: the call stays a call) or fail (MacroError, with a position).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from allot.cel.syntax import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Constant,
    Expression,
    Identifier,
    ListLiteral,
    MapLiteral,
    Select,
)


class MacroKey(NamedTuple):
    """A macro is identified by name, whether it has a target, and its number of arguments."""

    name: str
    on_target: bool
    arguments: int


class MacroError(Exception):
    """Invalid arguments of a macro."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset, self.message = offset, message


Arguments = tuple[Expression, ...]
Macro = Callable[[int, Expression | None, Arguments], Expression | None]


def _call(offset: int, function: str, *arguments: Expression) -> Call:
    return Call(offset, function, None, arguments)


def _accumulator(offset: int) -> Identifier:
    return Identifier(offset, ACCUMULATOR)


def _variable(argument: Expression, message: str = "argument must be a simple name") -> str:
    if not isinstance(argument, Identifier) or argument.name.startswith("."):
        raise MacroError(argument.offset, message)
    if argument.name == ACCUMULATOR or argument.name == "__result__":
        raise MacroError(argument.offset, "iteration variable overwrites accumulator variable")
    return argument.name


class _Loop(NamedTuple):
    """The variables of a loop, and the remaining arguments."""

    variable: str
    variable2: str | None
    rest: Arguments


def _one_variable(arguments: Arguments) -> _Loop:
    return _Loop(_variable(arguments[0]), None, arguments[1:])


def _element_variable(arguments: Arguments) -> _Loop:
    return _Loop(_variable(arguments[0], "argument is not an identifier"), None, arguments[1:])


def _two_variables(arguments: Arguments) -> _Loop:
    first = _variable(arguments[0])
    second = _variable(arguments[1])
    if first == second:
        raise MacroError(arguments[1].offset, f"duplicate variable name: {first}")
    return _Loop(first, second, arguments[2:])


def _fold(
    offset: int,
    target: Expression | None,
    loop: _Loop,
    initial: Expression,
    step: Expression,
    *,
    condition: Expression | None = None,
    result: Expression | None = None,
) -> Comprehension:
    if target is None:
        raise MacroError(offset, "macro needs a target")
    return Comprehension(
        offset,
        target,
        loop.variable,
        loop.variable2,
        ACCUMULATOR,
        initial,
        condition or Constant(offset, True),
        step,
        result or _accumulator(offset),
    )


def _has(offset: int, _target: Expression | None, arguments: Arguments) -> Expression:
    (argument,) = arguments
    if isinstance(argument, Select) and not argument.test_only:
        return Select(offset, argument.operand, argument.field, test_only=True)
    raise MacroError(argument.offset, "invalid argument to has() macro")


def _all(variables: Callable[[Arguments], _Loop]) -> Macro:
    def expand(offset: int, target: Expression | None, arguments: Arguments) -> Expression:
        loop = variables(arguments)
        condition = _call(offset, "@not_strictly_false", _accumulator(offset))
        step = _call(offset, "_&&_", _accumulator(offset), loop.rest[0])
        return _fold(offset, target, loop, Constant(offset, True), step, condition=condition)

    return expand


def _exists(variables: Callable[[Arguments], _Loop]) -> Macro:
    def expand(offset: int, target: Expression | None, arguments: Arguments) -> Expression:
        loop = variables(arguments)
        negated = _call(offset, "!_", _accumulator(offset))
        condition = _call(offset, "@not_strictly_false", negated)
        step = _call(offset, "_||_", _accumulator(offset), loop.rest[0])
        return _fold(offset, target, loop, Constant(offset, False), step, condition=condition)

    return expand


def _exists_one(variables: Callable[[Arguments], _Loop]) -> Macro:
    def expand(offset: int, target: Expression | None, arguments: Arguments) -> Expression:
        loop = variables(arguments)
        counted = _call(offset, "_+_", _accumulator(offset), Constant(offset, 1))
        step = _call(offset, "_?_:_", loop.rest[0], counted, _accumulator(offset))
        result = _call(offset, "_==_", _accumulator(offset), Constant(offset, 1))
        return _fold(offset, target, loop, Constant(offset, 0), step, result=result)

    return expand


def _filtered(offset: int, step: Expression, predicate: Expression | None) -> Expression:
    if predicate is None:
        return step
    return _call(offset, "_?_:_", predicate, step, _accumulator(offset))


def _collect(
    offset: int,
    target: Expression | None,
    loop: _Loop,
    element: Expression,
    predicate: Expression | None,
) -> Expression:
    """The list of `element`, for every element of the target that satisfies `predicate`."""
    joined = _call(offset, "_+_", _accumulator(offset), ListLiteral(offset, (element,)))
    step = _filtered(offset, joined, predicate)
    return _fold(offset, target, loop, ListLiteral(offset, ()), step)


def _map(offset: int, target: Expression | None, arguments: Arguments) -> Expression:
    loop = _element_variable(arguments)
    predicate = loop.rest[0] if len(loop.rest) == 2 else None
    return _collect(offset, target, loop, loop.rest[-1], predicate)


def _filter(offset: int, target: Expression | None, arguments: Arguments) -> Expression:
    loop = _element_variable(arguments)
    element = Identifier(arguments[0].offset, loop.variable)
    return _collect(offset, target, loop, element, loop.rest[0])


def _transform_list(offset: int, target: Expression | None, arguments: Arguments) -> Expression:
    loop = _two_variables(arguments)
    predicate = loop.rest[0] if len(loop.rest) == 2 else None
    return _collect(offset, target, loop, loop.rest[-1], predicate)


def _transform_map(offset: int, target: Expression | None, arguments: Arguments) -> Expression:
    loop = _two_variables(arguments)
    key = Identifier(arguments[0].offset, loop.variable)
    predicate = loop.rest[0] if len(loop.rest) == 2 else None
    inserted = _call(offset, "cel.@mapInsert", _accumulator(offset), key, loop.rest[-1])
    step = _filtered(offset, inserted, predicate)
    return _fold(offset, target, loop, MapLiteral(offset, ()), step)


def _transform_entry(offset: int, target: Expression | None, arguments: Arguments) -> Expression:
    loop = _two_variables(arguments)
    predicate = loop.rest[0] if len(loop.rest) == 2 else None
    inserted = _call(offset, "cel.@mapInsert", _accumulator(offset), loop.rest[-1])
    step = _filtered(offset, inserted, predicate)
    return _fold(offset, target, loop, MapLiteral(offset, ()), step)


def _bound(offset: int, name: str, value: Expression, result: Expression) -> Comprehension:
    """The fold over an empty range that binds `value` to a name in `result`."""
    return Comprehension(
        offset,
        ListLiteral(offset, ()),
        "#unused",
        None,
        name,
        value,
        Constant(offset, False),
        Identifier(offset, name),
        result,
    )


def _bind(offset: int, target: Expression | None, arguments: Arguments) -> Expression | None:
    if not isinstance(target, Identifier) or target.name != "cel":
        return None
    name = arguments[0]
    if not isinstance(name, Identifier):
        raise MacroError(name.offset, "cel.bind() variable names must be simple identifiers")
    return _bound(offset, name.name, arguments[1], arguments[2])


def _optional_map(wraps: bool) -> Macro:
    name = "optMap" if wraps else "optFlatMap"

    def expand(offset: int, target: Expression | None, arguments: Arguments) -> Expression:
        variable, body = arguments
        if not isinstance(variable, Identifier):
            raise MacroError(variable.offset, f"{name}() variable name must be a simple identifier")
        value = Call(offset, "value", target, ())
        mapped: Expression = _bound(offset, variable.name, value, body)
        if wraps:
            mapped = _call(offset, "optional.of", mapped)
        has_value = Call(offset, "hasValue", target, ())
        return _call(offset, "_?_:_", has_value, mapped, _call(offset, "optional.none"))

    return expand


_SORTED: Final = "@__sortBy_input__"


def _sort_by(offset: int, target: Expression | None, arguments: Arguments) -> Expression:
    if target is None or isinstance(target, Constant | MapLiteral):
        raise MacroError(
            offset if target is None else target.offset,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        )
    keys = _map(offset, Identifier(offset, _SORTED), arguments)
    call = Call(offset, "@sortByAssociatedKeys", Identifier(offset, _SORTED), (keys,))
    return _bound(offset, _SORTED, target, call)


STANDARD: Final[Mapping[MacroKey, Macro]] = {
    MacroKey("has", False, 1): _has,
    MacroKey("all", True, 2): _all(_one_variable),
    MacroKey("exists", True, 2): _exists(_one_variable),
    MacroKey("exists_one", True, 2): _exists_one(_one_variable),
    MacroKey("map", True, 2): _map,
    MacroKey("map", True, 3): _map,
    MacroKey("filter", True, 2): _filter,
}
BINDINGS: Final[Mapping[MacroKey, Macro]] = {MacroKey("bind", True, 3): _bind}
OPTIONALS: Final[Mapping[MacroKey, Macro]] = {
    MacroKey("optMap", True, 2): _optional_map(wraps=True),
    MacroKey("optFlatMap", True, 2): _optional_map(wraps=False),
}
LISTS: Final[Mapping[MacroKey, Macro]] = {MacroKey("sortBy", True, 2): _sort_by}
TWO_VARIABLES: Final[Mapping[MacroKey, Macro]] = {
    MacroKey("all", True, 3): _all(_two_variables),
    MacroKey("exists", True, 3): _exists(_two_variables),
    MacroKey("existsOne", True, 3): _exists_one(_two_variables),
    MacroKey("exists_one", True, 3): _exists_one(_two_variables),
    MacroKey("transformList", True, 3): _transform_list,
    MacroKey("transformList", True, 4): _transform_list,
    MacroKey("transformMap", True, 3): _transform_map,
    MacroKey("transformMap", True, 4): _transform_map,
    MacroKey("transformMapEntry", True, 3): _transform_entry,
    MacroKey("transformMapEntry", True, 4): _transform_entry,
}
