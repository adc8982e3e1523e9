"""Unification: which types are assignable, and the bindings of type variables."""

from __future__ import annotations

from allot.cel import types
from allot.cel.types import Type, TypeKind

_NULLABLE = frozenset(
    {TypeKind.STRUCT, TypeKind.DURATION, TypeKind.TIMESTAMP, TypeKind.OPAQUE, TypeKind.WRAPPER}
)


class Bindings:
    """The current bindings of the type variables of one expression."""

    def __init__(self) -> None:
        self._bound: dict[Type, Type] = {}
        self._changes: list[tuple[Type, Type | None]] = []
        """Every binding with the previous one, for undo."""
        self._ground: dict[int, Type] = {}
        """Types without variables, by identity. Types nest deeply; these are not visited again."""
        self._variables = 0

    def new_variable(self) -> Type:
        self._variables += 1
        return types.parameter(f"_var{self._variables - 1}")

    def fits(self, given: Type, wanted: Type) -> bool:
        """Whether `given` is assignable to `wanted`; if so, variables are bound accordingly."""
        return self.all_fit((given,), (wanted,))

    def all_fit(self, given: tuple[Type, ...], wanted: tuple[Type, ...]) -> bool:
        if len(given) != len(wanted):
            return False
        before = len(self._changes)
        if all(map(self._fits, given, wanted)):
            return True
        while len(self._changes) > before:
            variable, was = self._changes.pop()
            if was is None:
                del self._bound[variable]
            else:
                self._bound[variable] = was
        return False

    def _bind(self, variable: Type, type_: Type) -> None:
        self._changes.append((variable, self._bound.get(variable)))
        self._bound[variable] = type_

    def is_ground(self, type_: Type) -> bool:
        """Whether no variable occurs in the type."""
        if not type_.parameters:
            return type_.kind is not TypeKind.PARAMETER
        if id(type_) in self._ground:
            return True
        if not all(map(self.is_ground, type_.parameters)):
            return False
        self._ground[id(type_)] = type_
        return True

    def resolved(self, type_: Type, *, free_as_dyn: bool = False) -> Type:
        """`type_` with its variables replaced by their bindings."""
        if type_.kind is TypeKind.PARAMETER:
            bound = self._bound.get(type_)
            if bound is not None:
                return self.resolved(bound, free_as_dyn=free_as_dyn)
            return types.DYN if free_as_dyn else type_
        if self.is_ground(type_):
            return type_
        inner = tuple(self.resolved(p, free_as_dyn=free_as_dyn) for p in type_.parameters)
        return type_._replace(parameters=inner)

    def _fits(self, given: Type, wanted: Type) -> bool:
        if wanted.kind is TypeKind.PARAMETER:
            fits, was_bound = self._may_stand_for(given, wanted)
            if fits or was_bound:
                return fits
        if given.kind is TypeKind.PARAMETER:
            return self._may_stand_for(wanted, given)[0]
        if given.is_dynamic or wanted.is_dynamic:
            return True
        if given.kind is TypeKind.NULL or wanted.kind is TypeKind.NULL:
            other = wanted if given.kind is TypeKind.NULL else given
            return other.kind is TypeKind.NULL or other.kind in _NULLABLE
        if given.kind is TypeKind.WRAPPER or wanted.kind is TypeKind.WRAPPER:
            return _unwrapped(given) == _unwrapped(wanted)
        if given.kind is TypeKind.TYPE:
            return wanted.kind is TypeKind.TYPE
        if given is wanted:
            return True
        if given.kind is not wanted.kind or given.name != wanted.name:
            return False
        if len(given.parameters) != len(wanted.parameters):
            return False
        return all(map(self._fits, given.parameters, wanted.parameters))

    def _may_stand_for(self, type_: Type, variable: Type) -> tuple[bool, bool]:
        """Whether `variable` can be bound to `type_`, and whether it was bound already."""
        if type_ == variable:
            return True, True
        bound = self._bound.get(variable)
        if bound is not None:
            if not self._fits(type_, bound):
                return False, True
            wider = most_general(type_, bound)
            if not self._mentions(wider, variable):
                self._bind(variable, wider)
            return True, True
        if self._mentions(type_, variable):
            return False, False
        self._bind(variable, type_)
        return True, False

    def _mentions(self, type_: Type, variable: Type) -> bool:
        if type_ == variable:
            return True
        if type_.kind is TypeKind.PARAMETER:
            bound = self._bound.get(type_)
            return bound is not None and self._mentions(bound, variable)
        if self.is_ground(type_):
            return False
        return any(self._mentions(inner, variable) for inner in type_.parameters)


def _unwrapped(type_: Type) -> Type:
    return type_.parameters[0] if type_.kind is TypeKind.WRAPPER else type_


def most_general(first: Type, second: Type) -> Type:
    """The one of two fitting types that admits more."""
    return first if _is_less_specific(first, second) else second


def _is_less_specific(first: Type, second: Type) -> bool:
    if first is second or first.is_dynamic or first.kind is TypeKind.PARAMETER:
        return True
    if second.is_dynamic or second.kind is TypeKind.PARAMETER:
        return False
    if first.kind is TypeKind.TYPE and second.kind is TypeKind.TYPE:
        return True
    if first.kind is TypeKind.WRAPPER and second in first.parameters:
        return True
    if first.kind in _NULLABLE and second.kind is TypeKind.NULL:
        return True
    if first.kind is not second.kind or first.name != second.name:
        return False
    if len(first.parameters) != len(second.parameters):
        return False
    return all(map(_is_less_specific, first.parameters, second.parameters))
