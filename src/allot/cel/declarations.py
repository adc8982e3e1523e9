"""Function declarations, for the checker and the evaluators.

Overloads are declared by their signature: `string.(int) -> string` is a member,
`(string) -> bool` a global function, capital letters are type parameters. How a call fails on
values of the wrong type follows from the way the function is bound:

- per overload: `no such overload: name(types)`;
- once for all overloads, for values with a trait: `no such overload: name`, or without the name if
  the first value is a string or a time;
- once for all overloads, without a trait: the error of the implementation.

With `takes_deadline`, an implementation gets the deadline before its arguments, because it may take long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, cast

from allot.api.quantity import Quantity
from allot.api.semver import Semver
from allot.cel import types
from allot.cel.errors import NO_SUCH_OVERLOAD, EvalError
from allot.cel.types import Type, TypeKind
from allot.cel.values import (
    CelList,
    Duration,
    Timestamp,
    Uint,
    Value,
    element,
    from_key,
    is_list,
    type_of,
)
from allot.deadline import Deadline

Implementation = Callable[..., Value]


class CallImplementation(NamedTuple):
    """The implementation of a call. With `takes_deadline`, the deadline comes before the arguments."""

    call: Implementation
    takes_deadline: bool


@dataclass(frozen=True)
class Overload:
    """One signature of a function, with its implementation unless the function as a whole is bound."""

    id: str
    is_member: bool
    parameters: tuple[Type, ...]
    result: Type
    implementation: Implementation | None = None
    takes_deadline: bool = False

    @cached_property
    def is_chosen_by_class(self) -> bool:
        """Whether the classes of the arguments decide if they are accepted, without looking at elements."""
        return all(
            inner.kind in _ANYTHING
            for parameter in self.parameters
            if parameter.kind in (TypeKind.LIST, TypeKind.MAP)
            for inner in parameter.parameters
        )

    def accepts(self, arguments: tuple[Value, ...]) -> bool:
        return len(arguments) == len(self.parameters) and all(
            map(_accepts, self.parameters, arguments)
        )


@dataclass(frozen=True, slots=True)
class Function:
    """All overloads of one name."""

    name: str
    overloads: tuple[Overload, ...]
    implementation: Implementation | None = None
    trait: Callable[[Value], bool] | None = None
    """Checked on the first argument before `implementation` is called."""
    takes_deadline: bool = False
    """Whether `implementation` does; overloads say it of their own."""

    def merged(self, other: Function) -> Function:
        """This function with the overloads of another library of the same name."""
        known = {overload.id for overload in self.overloads}
        added = tuple(overload for overload in other.overloads if overload.id not in known)
        return Function(
            self.name, self.overloads + added, self.implementation, self.trait, self.takes_deadline
        )

    def bound(self, overload_ids: tuple[str, ...]) -> CallImplementation:
        """The implementation of a call that the checker resolved to these overloads."""
        if self.implementation is not None:
            return CallImplementation(
                self._bound_as_a_whole(self.implementation), self.takes_deadline
            )
        if len(overload_ids) == 1:
            candidates = tuple(o for o in self.overloads if o.id == overload_ids[0])
            if candidates and all(p in _CLASSES for p in candidates[0].parameters):
                return CallImplementation(
                    _guarded(self.name, candidates[0]), candidates[0].takes_deadline
                )
        else:
            candidates = self.overloads
        return CallImplementation(
            _dispatched(self.name, candidates), any(o.takes_deadline for o in candidates)
        )

    def _bound_as_a_whole(self, implementation: Implementation) -> Implementation:
        trait = self.trait
        if trait is None:
            return implementation
        message = f"{NO_SUCH_OVERLOAD}: {self.name}"
        place = int(self.takes_deadline)

        def call(*arguments: Value) -> Value:
            first = arguments[place]
            if not trait(first):
                raise EvalError(NO_SUCH_OVERLOAD if type(first) in _RECEIVERS else message)
            return implementation(*arguments)

        return call


def _dispatched(name: str, candidates: tuple[Overload, ...]) -> Implementation:
    """Calls the first overload that accepts the arguments, mostly decided by their classes."""
    by_classes: dict[tuple[type, ...], Overload] = {}

    def chosen(arguments: tuple[Value, ...]) -> Overload:
        classes = tuple(map(type, arguments))
        known = by_classes.get(classes)
        if known is not None:
            return known
        told_by_classes = True
        for overload in candidates:
            told_by_classes = told_by_classes and overload.is_chosen_by_class
            if overload.implementation is not None and overload.accepts(arguments):
                if told_by_classes:
                    by_classes[classes] = overload
                return overload
        raise no_such_overload(name, arguments)

    def call(*arguments: Value) -> Value:
        return chosen(arguments).implementation(*arguments)  # type: ignore[misc]

    def call_with_deadline(deadline: Deadline, *arguments: Value) -> Value:
        overload = chosen(arguments)
        if overload.takes_deadline:
            return overload.implementation(deadline, *arguments)  # type: ignore[misc]
        return overload.implementation(*arguments)  # type: ignore[misc]

    return call_with_deadline if any(overload.takes_deadline for overload in candidates) else call


def _guarded(name: str, overload: Overload) -> Implementation:
    """Calls an overload whose parameters are checked by class alone: the usual case."""
    implementation = overload.implementation
    classes = tuple(_CLASSES[parameter] for parameter in overload.parameters)

    def call(*arguments: Value) -> Value:
        if implementation is None or tuple(map(type, arguments)) != classes:
            raise no_such_overload(name, arguments)
        return implementation(*arguments)

    def call_with_deadline(deadline: Deadline, *arguments: Value) -> Value:
        if implementation is None or tuple(map(type, arguments)) != classes:
            raise no_such_overload(name, arguments)
        return implementation(deadline, *arguments)

    if overload.takes_deadline:
        return call_with_deadline
    if implementation is None or len(classes) not in (1, 2):
        return call
    first, second = classes[0], classes[-1]

    def call_unary(value: Value) -> Value:
        return implementation(value) if type(value) is first else call(value)

    def call_binary(left: Value, right: Value) -> Value:
        if type(left) is first and type(right) is second:
            return implementation(left, right)
        return call(left, right)

    return call_unary if len(classes) == 1 else call_binary


def no_such_overload(name: str, arguments: Iterable[Value]) -> EvalError:
    shown = ", ".join(type_of(argument).name for argument in arguments)
    return EvalError(f"{NO_SUCH_OVERLOAD}: {name}({shown})")


def _accepts(parameter: Type, value: Value) -> bool:
    """Whether a value may be passed. Of lists and maps only the first element is checked."""
    if parameter.kind in _ANYTHING:
        return True
    actual = type_of(value)
    if parameter.name != actual.name:
        return False
    if parameter.kind is TypeKind.LIST and is_list(value):
        items = cast("CelList", value)
        return not len(items) or _accepts(parameter.parameters[0], element(items, 0))
    if parameter.kind is TypeKind.MAP and isinstance(value, dict):
        for key, item in value.items():
            return _accepts(parameter.parameters[0], from_key(key)) and _accepts(
                parameter.parameters[1], item
            )
    return True


_RECEIVERS: Final = frozenset({str, Timestamp, Duration})
"""Classes whose own error is used when no overload accepts them; it does not name the function."""

_CLASSES: Final[dict[Type, type]] = {
    types.BOOL: bool,
    types.BYTES: bytes,
    types.DOUBLE: float,
    types.INT: int,
    types.QUANTITY: Quantity,
    types.SEMVER: Semver,
    types.STRING: str,
    types.UINT: Uint,
}
_ANYTHING: Final = frozenset({TypeKind.DYN, TypeKind.ANY, TypeKind.PARAMETER})

_NAMED_TYPES: Final = {
    "any": types.ANY,
    "authorizer": types.AUTHORIZER,
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "cidr": types.CIDR,
    "decision": types.DECISION,
    "double": types.DOUBLE,
    "duration": types.DURATION,
    "dyn": types.DYN,
    "format": types.FORMAT,
    "groupCheck": types.GROUP_CHECK,
    "int": types.INT,
    "ip": types.IP,
    "null": types.NULL,
    "pathCheck": types.PATH_CHECK,
    "quantity": types.QUANTITY,
    "resourceCheck": types.RESOURCE_CHECK,
    "semver": types.SEMVER,
    "string": types.STRING,
    "timestamp": types.TIMESTAMP,
    "uint": types.UINT,
    "url": types.URL,
}
_words: Final = re.compile(r"[A-Za-z]+|->|[(),.]").findall


class _SignatureReader:
    def __init__(self, text: str) -> None:
        self._words: list[str] = _words(text)

    def _take(self) -> str:
        return self._words.pop(0)

    def _type(self) -> Type:
        name = self._take()
        arguments = self._list() if self._words and self._words[0] == "(" else ()
        match name:
            case "list":
                return types.list_of(arguments[0])
            case "map":
                return types.map_of(*arguments)
            case "optional":
                return types.optional_of(arguments[0])
            case "type":
                return types.type_of_type(arguments[0])
            case _ if name in _NAMED_TYPES:
                return _NAMED_TYPES[name]
            case _:
                return types.parameter(name)

    def _list(self) -> tuple[Type, ...]:
        self._take()
        listed: list[Type] = []
        while self._words[0] != ")":
            if self._words[0] == ",":
                self._take()
            listed.append(self._type())
        self._take()
        return tuple(listed)

    def signature(self) -> tuple[bool, tuple[Type, ...], Type]:
        is_member = self._words[0] != "("
        target: tuple[Type, ...] = ()
        if is_member:
            target = (self._type(),)
            self._take()  # the dot
        parameters = target + self._list()
        self._take()  # the arrow
        return is_member, parameters, self._type()


def overload(
    id_: str,
    signature: str,
    implementation: Implementation | None = None,
    *,
    takes_deadline: bool = False,
) -> Overload:
    is_member, parameters, result = _SignatureReader(signature).signature()
    return Overload(id_, is_member, parameters, result, implementation, takes_deadline)


def function(
    name: str,
    *overloads: Overload,
    implementation: Implementation | None = None,
    trait: Callable[[Value], bool] | None = None,
    takes_deadline: bool = False,
) -> Function:
    return Function(name, overloads, implementation, trait, takes_deadline)
