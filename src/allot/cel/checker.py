"""The type checker: infers the type of every node and the overloads of every call."""

from __future__ import annotations

from dataclasses import dataclass, field

from allot.cel import types
from allot.cel.declarations import Function
from allot.cel.environment import Environment
from allot.cel.errors import Issue, compilation_failed
from allot.cel.source import Source
from allot.cel.syntax import (
    Call,
    Comprehension,
    Constant,
    Expression,
    Identifier,
    ListLiteral,
    MapLiteral,
    MessageLiteral,
    Select,
    qualified_name,
)
from allot.cel.types import Type, TypeKind
from allot.cel.unification import Bindings, most_general
from allot.cel.values import type_of


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """The function of a call, and the overloads that match its arguments."""

    function: Function
    overload_ids: tuple[str, ...]
    on_target: bool
    """False also for `ns.function(x)`, where `ns` looks like a target but is part of the name."""


@dataclass(slots=True)
class Checked:
    """An expression with the types, references and overloads of its nodes."""

    root: Expression
    types: dict[Expression, Type] = field(default_factory=dict)
    names: dict[Expression, str] = field(default_factory=dict)
    """The variables and types that identifiers, and paths of them, stand for."""
    calls: dict[Call, ResolvedCall] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)


def check(expression: Expression, source: Source, environment: Environment) -> Checked:
    """The types of all nodes, or CelCompileError with all type errors."""
    checker = _Checker(source, environment, Checked(expression))
    checker.check(expression)
    checked = checker.checked
    if checked.issues and environment.is_checked:
        raise compilation_failed(source, checked.issues)
    for node, type_ in checked.types.items():
        checked.types[node] = checker.bindings.resolved(type_, free_as_dyn=True)
    return checked


class _Checker:
    def __init__(self, source: Source, environment: Environment, checked: Checked) -> None:
        self._source = source
        self._environment = environment
        self._scopes: list[dict[str, Type]] = []
        self.bindings = Bindings()
        self.checked = checked

    def check(self, node: Expression) -> Type:
        match node:
            case Constant():
                type_ = type_of(node.value)
            case Identifier():
                type_ = self._identifier(node)
            case Select():
                type_ = self._select(node)
            case Call():
                type_ = self._call(node)
            case ListLiteral():
                type_ = self._list(node)
            case MapLiteral():
                type_ = self._map(node)
            case MessageLiteral():
                type_ = self._message(node)
            case Comprehension():
                type_ = self._comprehension(node)
        self.checked.types[node] = type_
        return type_

    def _report(self, offset: int, message: str) -> None:
        self.checked.issues.append(Issue(*self._source.position(offset), message))

    def _mismatch(self, node: Expression, expected: Type, found: Type) -> None:
        self._report(node.offset, f"expected type '{expected.short()}' but found '{found.short()}'")

    def _undeclared(self, offset: int, name: str) -> Type:
        container = self._environment.container
        self._report(offset, f"undeclared reference to '{name}' (in container '{container}')")
        return types.ERROR

    # --- names ---

    def _find_variable(self, node: Expression, name: str) -> Type | None:
        """The type of the variable, or type, that `name` means here."""
        if not name.startswith("."):
            for scope in reversed(self._scopes):
                if name in scope:
                    self.checked.names[node] = name
                    return scope[name]
        for candidate in self._environment.candidates(name):
            if candidate in self._environment.variables:
                # The leading dot skips a loop variable of the same name.
                self.checked.names[node] = f".{candidate}"
                return self._environment.variables[candidate]
            if candidate in self._environment.type_names:
                self.checked.names[node] = f".{candidate}"
                return types.type_of_type(self._environment.type_names[candidate])
        return None

    def _identifier(self, node: Identifier) -> Type:
        found = self._find_variable(node, node.name)
        return found if found is not None else self._undeclared(node.offset, node.name)

    def _select(self, node: Select) -> Type:
        name = None if node.test_only else qualified_name(node)
        if name is not None and not self._is_local(name):
            found = self._find_variable(node, name)
            if found is not None:
                return found
        result = self._field(node, node.operand, node.field, optional=False)
        return types.BOOL if node.test_only else self.bindings.resolved(result)

    def _is_local(self, path: str) -> bool:
        """Whether a path starts with a loop variable, which then hides longer names."""
        first = path.split(".", maxsplit=1)[0]
        return any(first in scope for scope in self._scopes)

    def _field(self, node: Expression, operand: Expression, name: str, *, optional: bool) -> Type:
        operand_type = self.bindings.resolved(self.check(operand))
        target = types.unwrap_optional(operand_type)
        result = self._field_of(node, target, name)
        if optional or types.is_optional(operand_type):
            return types.optional_of(result)
        return result

    def _field_of(self, node: Expression, target: Type, name: str) -> Type:
        match target.kind:
            case TypeKind.MAP:
                return target.parameters[1]
            case TypeKind.STRUCT:
                message = self._environment.messages.get(target.name)
                if message is None:
                    self._report(node.offset, f"unexpected failed resolution of '{target.name}'")
                    return types.ERROR
                if name in message.fields:
                    return message.fields[name]
                self._report(node.offset, f"undefined field '{name}'")
                return types.ERROR
            case TypeKind.PARAMETER:
                self.bindings.fits(types.DYN, target)
                return types.DYN
            case _:
                if not target.is_dynamic:
                    self._report(
                        node.offset, f"type '{target.short()}' does not support field selection"
                    )
                return types.DYN

    # --- calls ---

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            return self._optional_select(node)
        argument_types = tuple(self.check(argument) for argument in node.arguments)
        if node.target is None:
            function = self._find_function(node.function)
            if function is None:
                return self._undeclared(node.offset, node.function)
            return self._resolve(node, function, argument_types, on_target=False)
        prefix = qualified_name(node.target)
        if prefix is not None:
            function = self._find_function(f"{prefix}.{node.function}")
            if function is not None:
                return self._resolve(node, function, argument_types, on_target=False)
        target_type = self.check(node.target)
        function = self._find_function(node.function)
        if function is None:
            return self._undeclared(node.offset, node.function)
        return self._resolve(node, function, (target_type, *argument_types), on_target=True)

    def _find_function(self, name: str) -> Function | None:
        for candidate in self._environment.candidates(name):
            if candidate in self._environment.functions:
                return self._environment.functions[candidate]
        return None

    def _optional_select(self, node: Call) -> Type:
        operand, field_node = node.arguments
        self.check(field_node)
        name = field_node.value if isinstance(field_node, Constant) else None
        if not isinstance(name, str):
            self._report(field_node.offset, "unsupported optional field selection")
            return types.ERROR
        return self.bindings.resolved(self._field(node, operand, name, optional=True))

    def _resolve(
        self, node: Call, function: Function, argument_types: tuple[Type, ...], *, on_target: bool
    ) -> Type:
        if function.name in ("_&&_", "_||_"):
            self.checked.calls[node] = ResolvedCall(function, (function.overloads[0].id,), False)
            return self._logical(node, argument_types)
        matching: list[str] = []
        result: Type | None = None
        for overload in function.overloads:
            if overload.is_member is not on_target:
                continue
            parameters, overload_result = self._fresh(overload.parameters, overload.result)
            if not self.bindings.all_fit(argument_types, parameters):
                continue
            matching.append(overload.id)
            found = self.bindings.resolved(overload_result)
            if result is None:
                result = found
            elif not result.is_dynamic and found != result:
                result = types.DYN
        self.checked.calls[node] = ResolvedCall(function, tuple(matching), on_target)
        if result is not None:
            return result
        shown = [
            self.bindings.resolved(type_, free_as_dyn=True).short() for type_ in argument_types
        ]
        applied = f"{shown[0]}.({', '.join(shown[1:])})" if on_target else f"({', '.join(shown)})"
        self._report(
            node.offset, f"found no matching overload for '{function.name}' applied to '{applied}'"
        )
        return types.ERROR

    def _logical(self, node: Call, argument_types: tuple[Type, ...]) -> Type:
        fits = True
        for argument, type_ in zip(node.arguments, argument_types, strict=True):
            if not self.bindings.fits(type_, types.BOOL):
                self._mismatch(
                    argument, types.BOOL, self.bindings.resolved(type_, free_as_dyn=True)
                )
                fits = False
        return types.BOOL if fits else types.ERROR

    def _fresh(self, parameters: tuple[Type, ...], result: Type) -> tuple[tuple[Type, ...], Type]:
        """A signature with its own type variables."""
        if all(map(self.bindings.is_ground, parameters)) and self.bindings.is_ground(result):
            return parameters, result
        variables: dict[Type, Type] = {}

        def renamed(type_: Type) -> Type:
            if type_.kind is TypeKind.PARAMETER:
                if type_ not in variables:
                    variables[type_] = self.bindings.new_variable()
                return variables[type_]
            if not type_.parameters:
                return type_
            return type_._replace(parameters=tuple(map(renamed, type_.parameters)))

        return tuple(map(renamed, parameters)), renamed(result)

    # --- literals ---

    def _join(self, before: Type | None, found: Type) -> Type:
        """The common type of elements of the types `before` and `found`."""
        if before is None:
            return found
        return most_general(before, found) if self.bindings.fits(before, found) else types.DYN

    def _optional_content(self, node: Expression, type_: Type) -> Type:
        resolved = self.bindings.resolved(type_)
        if not types.is_optional(resolved) and not resolved.is_dynamic:
            self._mismatch(node, types.optional_of(resolved), resolved)
        return types.unwrap_optional(resolved)

    def _list(self, node: ListLiteral) -> Type:
        joined: Type | None = None
        for index, element in enumerate(node.elements):
            found = self.check(element)
            if index in node.optional:
                found = self._optional_content(element, found)
            joined = self._join(joined, found)
        return types.list_of(joined if joined is not None else self.bindings.new_variable())

    def _map(self, node: MapLiteral) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._join(key, _key_type(self.check(entry.key)))
            found = self.check(entry.value)
            if entry.optional:
                found = self._optional_content(entry.value, found)
            value = self._join(value, found)
        if key is None or value is None:
            return types.map_of(self.bindings.new_variable(), self.bindings.new_variable())
        return types.map_of(key, value)

    def _message(self, node: MessageLiteral) -> Type:
        message = None
        for candidate in self._environment.candidates(node.type_name):
            message = self._environment.messages.get(candidate)
            if message is not None:
                self.checked.names[node] = candidate
                break
        if message is None:
            return self._no_message(node)
        for entry in node.fields:
            found = self.check(entry.value)
            if entry.optional:
                found = self._optional_content(entry.value, found)
            wanted = message.fields.get(entry.field)
            if wanted is None:
                self._report(entry.offset, f"undefined field '{entry.field}'")
            elif not self.bindings.fits(found, wanted):
                resolved = self.bindings.resolved(found, free_as_dyn=True)
                self._report(
                    entry.offset,
                    f"expected type of field '{entry.field}' is '{wanted.short()}' "
                    f"but provided type is '{resolved.short()}'",
                )
        return message.type

    def _no_message(self, node: MessageLiteral) -> Type:
        """Reports why a name is not that of a message; its fields are not checked."""
        meant = self._find_variable(node, node.type_name)
        if meant is None:
            return self._undeclared(node.offset, node.type_name)
        if meant.kind is TypeKind.TYPE:
            self._report(node.offset, f"'{meant.parameters[0].name}' is not a message type")
        else:
            self._report(node.offset, f"'{meant.name}' is not a type")
        return types.ERROR

    # --- loops ---

    def _comprehension(self, node: Comprehension) -> Type:
        range_type = self.bindings.resolved(self.check(node.range))
        accumulator = self.check(node.initial)
        self._scopes.append({node.accumulator: accumulator})
        self._scopes.append(self._loop_variables(node, range_type))
        self._expect(node.condition, types.BOOL)
        self._expect(node.step, accumulator)
        self._scopes.pop()
        result = self.check(node.result)
        self._scopes.pop()
        return self.bindings.resolved(result)

    def _loop_variables(self, node: Comprehension, range_type: Type) -> dict[str, Type]:
        match range_type.kind:
            case TypeKind.LIST:
                first, second = types.INT, range_type.parameters[0]
                if node.variable2 is None:
                    first = second
            case TypeKind.MAP:
                first, second = range_type.parameters
            case TypeKind.DYN | TypeKind.ERROR | TypeKind.PARAMETER:
                self.bindings.fits(types.DYN, range_type)
                first = second = types.DYN
            case _:
                self._report(
                    node.range.offset,
                    f"expression of type '{range_type.short()}' cannot be range of a "
                    "comprehension (must be list, map, or dynamic)",
                )
                first = second = types.ERROR
        variables = {node.variable: first}
        if node.variable2 is not None:
            variables[node.variable2] = second
        return variables

    def _expect(self, node: Expression, wanted: Type) -> None:
        found = self.check(node)
        if not self.bindings.fits(wanted, found):
            self._mismatch(
                node,
                self.bindings.resolved(wanted, free_as_dyn=True),
                self.bindings.resolved(found, free_as_dyn=True),
            )


_MOST_NESTED_KEY = 4


def _key_type(type_: Type) -> Type:
    """The type, or dyn if it nests deeply: keys of keys would make types that double in size."""
    level = [type_]
    for _ in range(_MOST_NESTED_KEY):
        level = [inner for outer in level for inner in outer.parameters]
    return types.DYN if level else type_
