"""Operands of expressions: names, literals, calls and macros, lists, maps, messages, and member access.

`parser` reads the operators between them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

from allot.cel import lexer
from allot.cel.lexer import Lexeme, LiteralError, Token
from allot.cel.macros import MacroError, MacroKey
from allot.cel.syntax import (
    Call,
    Constant,
    Expression,
    FieldValue,
    Identifier,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    MessageLiteral,
    Select,
    qualified_name,
)
from allot.cel.token_reader import TokenReader

RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)

_WORD_CONSTANTS: Final[Mapping[str, Literal]] = {"true": True, "false": False, "null": None}
_EXPECTED: Final = (
    "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', "
    "NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


class OperandParser(TokenReader, ABC):
    """The part of the grammar that binds tightest."""

    @abstractmethod
    def _expression(self) -> Expression:
        """A whole expression, in parentheses, brackets or arguments."""

    def _member(self) -> Expression:
        parenthesized = self._next.is_symbol("(")
        expression = self._primary()
        while self._next.token is Token.SYMBOL and self._next.text in ".[{":
            if self._next.text == "{":
                name = None if parenthesized else qualified_name(expression)
                if name is None:
                    break
                expression = self._message(name)
                parenthesized = True
            elif self._next.text == "[":
                expression = self._index_of(expression)
            else:
                expression = self._selected_from(expression)
        return expression

    def _index_of(self, operand: Expression) -> Expression:
        bracket, operand_height = self._advance(), self._height
        optional = self._accept("?")
        index = self._expression()
        self._expect("]")
        self._higher(operand_height)
        function = "_[?_]" if optional else "_[_]"
        return Call(bracket.offset, function, None, (operand, index))

    def _selected_from(self, operand: Expression) -> Expression:
        dot = self._advance()
        optional = self._accept("?")
        if self._next.token not in (Token.IDENTIFIER, Token.QUOTED_IDENTIFIER):
            shown = "." if self._next.token is Token.END else f".{self._next.text}"
            raise self._unexpected(f"no viable alternative at input '{shown}'")
        word = self._advance()
        field = word.text.strip("`")
        operand_height = self._height
        self._higher()
        if optional:
            return Call(dot.offset, "_?._", None, (operand, Constant(word.offset, field)))
        if word.token is Token.IDENTIFIER and self._next.is_symbol("("):
            parenthesis = self._advance()
            arguments = self._arguments()
            self._higher(operand_height)
            return self._call(parenthesis.offset, field, operand, arguments)
        return Select(dot.offset, operand, field)

    def _arguments(self) -> tuple[Expression, ...]:
        self._height = 0
        if self._accept(")"):
            return ()
        arguments = [self._expression()]
        height = self._height
        while self._accept(","):
            arguments.append(self._expression())
            height = max(height, self._height)
        self._expect(")")
        self._height = height
        return tuple(arguments)

    def _call(
        self,
        offset: int,
        function: str,
        target: Expression | None,
        arguments: tuple[Expression, ...],
    ) -> Expression:
        macro = self._macros.get(MacroKey(function, target is not None, len(arguments)))
        if macro is not None:
            try:
                expanded = macro(offset, target, arguments)
            except MacroError as error:
                return self._report(error.offset, error.message)
            if expanded is not None:
                return expanded
        return Call(offset, function, target, arguments)

    def _primary(self) -> Expression:
        first = self._next
        if first.token is Token.SYMBOL:
            match first.text:
                case "(":
                    self._advance()
                    expression = self._expression()
                    self._expect(")")
                    return expression
                case "[":
                    return self._list()
                case "{":
                    return self._map()
                case "." | "-" | "true" | "false" | "null":
                    return self._name_or_constant()
        elif first.token is not Token.END and first.token is not Token.QUOTED_IDENTIFIER:
            return self._name_or_constant()
        raise self._unexpected(f"mismatched input '{first.text}' {_EXPECTED}")

    def _name_or_constant(self) -> Expression:
        self._height = 0
        first = self._advance()
        if first.is_symbol("."):
            if self._next.token is not Token.IDENTIFIER:
                raise self._unexpected(f"no viable alternative at input '.{self._next.text}'")
            return self._name("." + self._advance().text, first.offset)
        if first.token is Token.IDENTIFIER:
            return self._name(first.text, first.offset)
        if first.token is Token.SYMBOL and first.text in _WORD_CONSTANTS:
            return Constant(first.offset, _WORD_CONSTANTS[first.text])
        if first.is_symbol("-"):
            return self._literal(self._advance(), "-", first.offset)
        return self._literal(first, "", first.offset)

    def _name(self, name: str, offset: int) -> Expression:
        if name.removeprefix(".") in RESERVED:
            reserved = self._report(offset, f"reserved identifier: {name.removeprefix('.')}")
            self._skip_arguments()
            return reserved
        if self._next.is_symbol("("):
            parenthesis = self._advance()
            return self._call(parenthesis.offset, name, None, self._arguments())
        return Identifier(offset, name)

    def _skip_arguments(self) -> None:
        """Skips the arguments of an invalid call; errors in them are not reported."""
        if self._accept("("):
            found = len(self._issues)
            self._arguments()
            del self._issues[found:]
            self._height = 0

    def _literal(self, lexeme: Lexeme, sign: str, offset: int) -> Expression:
        try:
            match lexeme.token:
                case Token.INT:
                    return Constant(offset, lexer.int_value(sign + lexeme.text))
                case Token.UINT:
                    return Constant(offset, lexer.uint_value(lexeme.text))
                case Token.FLOAT:
                    return Constant(offset, lexer.float_value(sign + lexeme.text))
                case Token.BYTES:
                    return Constant(offset, lexer.bytes_value(lexeme.text))
                case _:
                    return Constant(offset, lexer.string_value(lexeme.text))
        except LiteralError as error:
            return self._report(offset, str(error))

    # --- literals of aggregates ---

    def _list(self) -> Expression:
        bracket = self._advance()
        elements: list[Expression] = []
        optional: set[int] = set()
        height = 0
        while not self._next.is_symbol("]"):
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            height = max(height, self._height)
            if not self._accept(","):
                break
        self._expect("]")
        self._height = height
        return ListLiteral(bracket.offset, tuple(elements), frozenset(optional))

    def _map(self) -> Expression:
        brace = self._advance()
        entries: list[MapEntry] = []
        height = 0
        while not self._next.is_symbol("}"):
            optional = self._accept("?") is not None
            key = self._expression()
            height = max(height, self._height)
            colon = self._expect(":")
            entries.append(MapEntry(colon.offset, key, self._expression(), optional))
            height = max(height, self._height)
            if not self._accept(","):
                break
        self._expect("}")
        self._height = height
        return MapLiteral(brace.offset, tuple(entries))

    def _message(self, name: str) -> Expression:
        brace = self._advance()
        fields: list[FieldValue] = []
        height = 0
        while not self._next.is_symbol("}"):
            optional = self._accept("?") is not None
            if self._next.token not in (Token.IDENTIFIER, Token.QUOTED_IDENTIFIER):
                raise self._unexpected(f"mismatched input '{self._next.text}' expecting IDENTIFIER")
            field = self._advance().text.strip("`")
            colon = self._expect(":")
            fields.append(FieldValue(colon.offset, field, self._expression(), optional))
            height = max(height, self._height)
            if not self._accept(","):
                break
        self._expect("}")
        self._height = height
        return MessageLiteral(brace.offset, name, tuple(fields))
