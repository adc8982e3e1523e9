"""Environments: the variables, types, functions and macros that an expression may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from allot.cel import types
from allot.cel.declarations import Function
from allot.cel.macros import Macro, MacroKey
from allot.cel.types import Type
from allot.cel.values import Value

TYPE_NAMES: Final[Mapping[str, Type]] = {
    type_.name: type_
    for type_ in (
        types.BOOL,
        types.BYTES,
        types.DOUBLE,
        types.DURATION,
        types.INT,
        types.LIST,
        types.MAP,
        types.NULL,
        types.STRING,
        types.TIMESTAMP,
        types.TYPE,
        types.UINT,
        types.OPTIONAL,
        types.IP,
        types.CIDR,
    )
}
"""Types that can be named in an expression, as in `type(x) == int`."""


@dataclass(frozen=True, slots=True)
class MessageType:
    """A type with fields: `name{field: value}` makes one, `value.field` reads it."""

    type: Type
    fields: Mapping[str, Type]
    build: Callable[[dict[str, Value]], Value] | None = None
    """None: the type is declared but cannot be constructed."""


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """Everything that is declared. Immutable, and shared by all programs compiled in it.

    Compared by identity, so that programs can be cached by their environment.
    """

    variables: Mapping[str, Type]
    messages: Mapping[str, MessageType]
    functions: Mapping[str, Function]
    macros: Mapping[MacroKey, Macro]
    container: str = ""
    is_checked: bool = True
    """If False, type errors are reported by the evaluation."""
    type_names: Mapping[str, Type] = field(default_factory=lambda: TYPE_NAMES)

    def candidates(self, name: str) -> Iterator[str]:
        """The names that `name` may mean, from the innermost container outwards."""
        if name.startswith("."):
            yield name[1:]
            return
        container = self.container
        while container:
            yield f"{container}.{name}"
            container = container.rpartition(".")[0]
        yield name


def merge_functions(libraries: Iterable[Iterable[Function]]) -> dict[str, Function]:
    """The functions of all libraries by name; overloads of the same name come together."""
    functions: dict[str, Function] = {}
    for library in libraries:
        for function in library:
            known = functions.get(function.name)
            functions[function.name] = known.merged(function) if known else function
    return functions
