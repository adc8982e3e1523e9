"""The parser: from source to syntax tree, for the whole grammar, with macros expanded.

Precedence, loosest first: `?:`, `||`, `&&`, relations, `+ -`, `* / %`, unary `! -`; then the operands, which
`operand_parser` reads. `token_reader` limits nesting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from allot.cel import lexer
from allot.cel.errors import Issue, compilation_failed
from allot.cel.lexer import Lexeme, Token
from allot.cel.macros import Macro, MacroKey
from allot.cel.operand_parser import OperandParser
from allot.cel.recursion import recursion_room
from allot.cel.source import Source
from allot.cel.syntax import Call, Expression
from allot.cel.token_reader import MAX_DEPTH, CelSyntaxError, TooDeepError

MAX_CODE_POINTS: Final = 100_000

_RELATIONS: Final = {
    "==": "_==_", "!=": "_!=_", "<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "in": "@in",
}  # fmt: skip
_ENDS: Final = frozenset({",", ")", "]", "}", ":", "<EOF>"})
_LOOSER: Final = _ENDS | _RELATIONS.keys() | {"&&", "||", "?"}
_SUMS: Final = {"+": "_+_", "-": "_-_"}
_PRODUCTS: Final = {"*": "_*_", "/": "_/_", "%": "_%_"}
_NUMBERS: Final = (Token.INT, Token.FLOAT)


def parse(source: Source, macros: Mapping[MacroKey, Macro]) -> Expression:
    """The syntax tree of an expression, or CelCompileError with all syntax errors."""
    if len(source.text) > MAX_CODE_POINTS:
        issue = Issue(
            -1, -1, f"expression code point size exceeds limit: size: {len(source.text)}, "
            f"limit {MAX_CODE_POINTS}",
        )  # fmt: skip
        raise compilation_failed(source, [issue])
    issues: list[Issue] = []
    lexemes = lexer.tokenize(source, issues)
    parser = _Parser(source, lexemes, macros, issues)
    try:
        with recursion_room(_deepest_nesting(lexemes)):
            expression = parser.whole()
    except CelSyntaxError:
        expression = None
    except TooDeepError as too_deep:
        issues.append(Issue(-1, -1, str(too_deep)))
        expression = None
    if issues or expression is None:
        raise compilation_failed(source, issues)
    return expression


def _deepest_nesting(lexemes: list[Lexeme]) -> int:
    """An upper bound of the levels the parser descends before its own limit stops it."""
    opened = sum(lexeme.text in "([{?" for lexeme in lexemes if lexeme.token is Token.SYMBOL)
    return min(opened, MAX_DEPTH) + 2


class _Parser(OperandParser):
    """The operators, loosest first."""

    def whole(self) -> Expression:
        expression = self._expression()
        if self._next.token is not Token.END:
            raise self._unexpected(f"extraneous input '{self._next.text}' expecting <EOF>")
        return expression

    def _expression(self) -> Expression:
        self._expressions += 1
        self._deeper(self._expressions)
        if self._is_followed_by(_ENDS):
            # Fast path for the elements of long lists: a single literal or name.
            self._deeper(max(self._relations, self._sums) + 1)
            self._expressions -= 1
            return self._primary()
        expression = self._logical("||", "_||_")
        question = self._accept("?")
        if question:
            condition_height = self._height
            when_true = self._logical("||", "_||_")
            true_height = self._height
            self._expect(":")
            when_false = self._expression()
            self._higher(condition_height, true_height)
            arguments = (expression, when_true, when_false)
            expression = Call(question.offset, "_?_:_", None, arguments)
        self._expressions -= 1
        return expression

    def _logical(self, symbol: str, function: str) -> Expression:
        operands = [self._logical("&&", "_&&_") if symbol == "||" else self._relation()]
        operators: list[int] = []
        height = self._height
        while self._next.is_symbol(symbol):
            operators.append(self._advance().offset)
            operands.append(self._logical("&&", "_&&_") if symbol == "||" else self._relation())
            height = max(height, self._height)
        self._height = height
        return _balanced(function, operands, operators)

    def _relation(self) -> Expression:
        self._relations += 1
        self._deeper(self._relations)
        left = self._sum()
        while self._next.token is Token.SYMBOL and self._next.text in _RELATIONS:
            operator, left_height = self._advance(), self._height
            self._relations += 1
            self._deeper(self._relations)
            right = self._sum()
            self._relations -= 1
            self._higher(left_height)
            left = Call(operator.offset, _RELATIONS[operator.text], None, (left, right))
        self._relations -= 1
        return left

    def _sum(self) -> Expression:
        self._sums += 1
        self._deeper(self._sums)
        if self._is_followed_by(_LOOSER):
            self._sums -= 1
            return self._primary()
        left = self._product()
        while self._next.token is Token.SYMBOL and self._next.text in _SUMS:
            operator, left_height = self._advance(), self._height
            self._sums += 1
            self._deeper(self._sums)
            right = self._product()
            self._sums -= 1
            self._higher(left_height)
            left = Call(operator.offset, _SUMS[operator.text], None, (left, right))
        self._sums -= 1
        return left

    def _product(self) -> Expression:
        left = self._unary()
        while self._next.token is Token.SYMBOL and self._next.text in _PRODUCTS:
            operator, left_height = self._advance(), self._height
            self._sums += 1
            self._deeper(self._sums)
            right = self._unary()
            self._sums -= 1
            self._higher(left_height)
            left = Call(operator.offset, _PRODUCTS[operator.text], None, (left, right))
        return left

    def _unary(self) -> Expression:
        first = self._next
        for symbol, function in (("!", "!_"), ("-", "-_")):
            if first.is_symbol(symbol):
                if symbol == "-" and self._lexemes[self._index + 1].token in _NUMBERS:
                    return self._member()
                count = 0
                while self._accept(symbol):
                    count += 1
                operand = self._member()
                return Call(first.offset, function, None, (operand,)) if count % 2 else operand
        return self._member()


def _balanced(function: str, operands: list[Expression], operators: list[int]) -> Expression:
    """One tree for a chain of `&&` or `||`, balanced, because chains may be long."""
    if not operators:
        return operands[0]
    middle = (len(operators) - 1) // 2
    left = _balanced(function, operands[: middle + 1], operators[:middle])
    right = _balanced(function, operands[middle + 1 :], operators[middle + 1 :])
    return Call(operators[middle], function, None, (left, right))
