"""Checks of literals that types cannot make: formats, patterns, homogeneous lists and maps."""

from __future__ import annotations

from collections.abc import Iterator

from allot.api.durations import parse_duration
from allot.cel.checker import Checked
from allot.cel.errors import EvalError, Issue, compilation_failed
from allot.cel.library.formatting import LONE_PERCENT, WRONG_TYPE, Clause, parse_format
from allot.cel.library.regexes import RegexError, compiled
from allot.cel.library.times import parse_timestamp
from allot.cel.source import Source
from allot.cel.syntax import (
    Call,
    Constant,
    Expression,
    ListLiteral,
    MapLiteral,
    children,
)
from allot.cel.types import Type, TypeKind, unwrap_optional


def check_literals(checked: Checked, source: Source) -> None:
    """Raises CelCompileError with all issues of the literals of an expression."""
    issues = [
        Issue(*source.position(offset), message)
        for offset, message in _Validator(checked).findings()
    ]
    if issues:
        raise compilation_failed(source, issues)


Finding = tuple[int, str]


class _Validator:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked

    def findings(self) -> Iterator[Finding]:
        waiting: list[tuple[Expression, bool]] = [(self._checked.root, False)]
        while waiting:
            node, is_formatted = waiting.pop()
            match node:
                case Call():
                    yield from self._call(node)
                case ListLiteral() if not is_formatted:
                    yield from self._list(node)
                case MapLiteral() if not is_formatted:
                    yield from self._map(node)
                case _:
                    pass
            # `format` takes values of any type, so lists and maps among its arguments may be mixed.
            if isinstance(node, Call):
                is_formatted = node.function == "format"
            elif not isinstance(node, ListLiteral | MapLiteral):
                is_formatted = False
            waiting.extend((child, is_formatted) for child in children(node))

    def _type(self, node: Expression) -> Type:
        return self._checked.types[node]

    # --- constants with a required format ---

    def _call(self, call: Call) -> Iterator[Finding]:
        if call.function == "format":
            yield from self._format(call)
        check = _LITERAL_CHECKS.get(call.function)
        if check is None or not call.arguments:
            return
        argument = call.arguments[0]
        text = argument.value if isinstance(argument, Constant) else None
        if isinstance(text, str) and not check(text):
            yield argument.offset, f"invalid {call.function} argument"

    def _format(self, call: Call) -> Iterator[Finding]:
        text = call.target
        if not isinstance(text, Constant) or not isinstance(text.value, str):
            return
        if len(call.arguments) != 1 or not isinstance(call.arguments[0], ListLiteral):
            return
        arguments = call.arguments[0].elements
        used = 0
        for part in parse_format(text.value):
            if isinstance(part, str):
                continue
            is_short = used >= len(arguments)
            if isinstance(part, EvalError) and (part.message == LONE_PERCENT or not is_short):
                yield call.offset, part.message
                return
            if is_short or isinstance(part, EvalError):
                yield call.offset, f"index {used} out of range"
                return
            wrong = self._unfit(part, arguments[used])
            if wrong is not None:
                message = WRONG_TYPE[part.kind].format(self._type(wrong).name)
                yield wrong.offset, f"error during formatting: {message}"
                return
            used += 1
        if used < len(arguments):
            counts = f"(expected {used}, got {len(arguments)})"
            yield call.offset, f"too many arguments supplied to string.format {counts}"

    def _unfit(self, clause: Clause, argument: Expression) -> Expression | None:
        """The argument, or the part of it, whose type does not fit the clause."""
        kind = self._type(argument).kind
        if kind is not TypeKind.DYN and kind not in _KINDS_BY_CLAUSE[clause.kind]:
            return argument
        if clause.kind == "s" and isinstance(argument, ListLiteral | MapLiteral):
            for child in children(argument):
                unfit = self._unfit(clause, child)
                if unfit is not None:
                    return unfit
        return None

    # --- homogeneous literals ---

    def _list(self, literal: ListLiteral) -> Iterator[Finding]:
        first: Type | None = None
        for index, element in enumerate(literal.elements):
            found = self._type(element)
            if index in literal.optional:
                found = unwrap_optional(found)
            if first is None:
                first = found
            elif found != first:
                yield _mismatch(element, first, found)
                return

    def _map(self, literal: MapLiteral) -> Iterator[Finding]:
        first: tuple[Type, Type] | None = None
        for entry in literal.entries:
            key, value = self._type(entry.key), self._type(entry.value)
            if entry.optional:
                value = unwrap_optional(value)
            if first is None:
                first = key, value
                continue
            if key != first[0]:
                yield _mismatch(entry.key, first[0], key)
            if value != first[1]:
                yield _mismatch(entry.value, first[1], value)


def _mismatch(node: Expression, expected: Type, found: Type) -> Finding:
    return node.offset, f"expected type '{expected.short()}' but found '{found.short()}'"


def _is_regex(pattern: str) -> bool:
    try:
        compiled(pattern)
    except RegexError:
        return False
    return True


def _is_timestamp(text: str) -> bool:
    try:
        return parse_timestamp(text) is not None
    except EvalError:
        return False


_LITERAL_CHECKS = {
    "duration": lambda text: parse_duration(text) is not None,
    "timestamp": _is_timestamp,
    "matches": _is_regex,
}

_INTEGERS = frozenset({TypeKind.INT, TypeKind.UINT})
_DOUBLES = frozenset({TypeKind.DOUBLE, TypeKind.STRING})
_KINDS_BY_CLAUSE = {
    "s": _INTEGERS
    | {
        TypeKind.LIST,
        TypeKind.MAP,
        TypeKind.DOUBLE,
        TypeKind.BOOL,
        TypeKind.STRING,
        TypeKind.TIMESTAMP,
        TypeKind.BYTES,
    }
    | {TypeKind.DURATION, TypeKind.TYPE, TypeKind.NULL},
    "d": _INTEGERS,
    "f": _DOUBLES,
    "e": _DOUBLES,
    "b": _INTEGERS | {TypeKind.BOOL},
    "x": _INTEGERS | {TypeKind.STRING, TypeKind.BYTES},
    "X": _INTEGERS | {TypeKind.STRING, TypeKind.BYTES},
    "o": _INTEGERS,
}
