"""The state of the parser: the next token, errors so far, and limits on nesting.

Nesting has the same two limits as in cel-go, so that both accept the same expressions. While parsing, no grammar rule
may be open more than 250 times; a right operand opens its rule once more than a left one. And no path in the resulting
tree may have more than 250 operators and member accesses; a chain such as `a + b + c` has one more per operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from allot.cel.errors import Issue
from allot.cel.lexer import Lexeme, Token
from allot.cel.macros import Macro, MacroKey
from allot.cel.source import Source
from allot.cel.syntax import Constant

MAX_DEPTH: Final = 250

_SINGLE: Final = frozenset(
    {Token.INT, Token.UINT, Token.FLOAT, Token.STRING, Token.BYTES, Token.IDENTIFIER}
)


class CelSyntaxError(Exception):
    """Stops parsing; the error is in `issues`."""


class TooDeepError(Exception):
    """The expression nests deeper than allowed; the message says which limit it is."""


_RULE_TOO_DEEP: Final = f"expression recursion limit exceeded: {MAX_DEPTH}"
_TREE_TOO_DEEP: Final = "max recursion depth exceeded"


class TokenReader:
    """Reads tokens one by one, and collects errors."""

    def __init__(
        self,
        source: Source,
        lexemes: list[Lexeme],
        macros: Mapping[MacroKey, Macro],
        issues: list[Issue],
    ) -> None:
        self._source = source
        self._lexemes = lexemes
        self._index = 0
        self._next = lexemes[0]
        self._macros = macros
        self._issues = issues
        self._expressions = self._relations = self._sums = 0
        self._height = 0
        """The maximum of operators and accesses on a path through the last parsed node."""

    # --- reading tokens ---

    def _advance(self) -> Lexeme:
        read = self._next
        self._index = min(self._index + 1, len(self._lexemes) - 1)
        self._next = self._lexemes[self._index]
        return read

    def _accept(self, symbol: str) -> Lexeme | None:
        return self._advance() if self._next.is_symbol(symbol) else None

    def _expect(self, symbol: str) -> Lexeme:
        read = self._accept(symbol)
        if read is None:
            raise self._unexpected(f"mismatched input '{self._next.text}' expecting '{symbol}'")
        return read

    def _unexpected(self, message: str) -> CelSyntaxError:
        line, column = self._source.position(self._next.offset)
        if not self._source.text:
            column = -1
        self._issues.append(Issue(line, column, f"Syntax error: {message}"))
        return CelSyntaxError()

    def _report(self, offset: int, message: str) -> Constant:
        """Adds an error that does not stop parsing; the node is a placeholder."""
        self._issues.append(Issue(*self._source.position(offset), message))
        return Constant(offset, None)

    def _is_followed_by(self, symbols: frozenset[str]) -> bool:
        """Whether a literal or a name is next, and then one of these."""
        if self._next.token not in _SINGLE:
            return False
        return self._lexemes[self._index + 1].text in symbols

    def _deeper(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise TooDeepError(_RULE_TOO_DEEP)

    def _higher(self, *heights: int) -> None:
        """Adds an operator or access above the last parsed node and operands of these heights."""
        self._height = max((self._height, *heights)) + 1
        if self._height > MAX_DEPTH:
            raise TooDeepError(_TREE_TOO_DEEP)
