"""The parser: from source to syntax tree, for the whole grammar, with macros expanded.

Precedence, loosest first: `?:`, `||`, `&&`, relations, `+ -`, `* / %`, unary `! -`, then member
access. Nesting has the same two limits as in cel-go, so that both accept the same expressions. While
parsing, no grammar rule may be open more than 250 times; a right operand opens its rule once more than a
left one. And no path in the resulting tree may have more than 250 operators and member accesses; a chain
such as `a + b + c` has one more per operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from allot.cel import lexer
from allot.cel.errors import Issue, compilation_failed
from allot.cel.lexer import Lexeme, LiteralError, Token
from allot.cel.macros import Macro, MacroError, MacroKey
from allot.cel.recursion import make_room
from allot.cel.source import Source
from allot.cel.syntax import (
    Call,
    Constant,
    Entry,
    Expression,
    FieldValue,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Select,
    qualified_name,
)

MAX_DEPTH: Final = 250
MAX_CODE_POINTS: Final = 100_000

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

_RELATIONS: Final = {
    "==": "_==_", "!=": "_!=_", "<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "in": "@in",
}  # fmt: skip
_ENDS: Final = frozenset({",", ")", "]", "}", ":", "<EOF>"})
_LOOSER: Final = _ENDS | _RELATIONS.keys() | {"&&", "||", "?"}
_SINGLE: Final = frozenset(
    {Token.INT, Token.UINT, Token.FLOAT, Token.STRING, Token.BYTES, Token.IDENTIFIER}
)
_SUMS: Final = {"+": "_+_", "-": "_-_"}
_PRODUCTS: Final = {"*": "_*_", "/": "_/_", "%": "_%_"}
_WORD_CONSTANTS: Final[Mapping[str, Literal]] = {"true": True, "false": False, "null": None}
_EXPECTED: Final = (
    "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', "
    "NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


class _SyntaxError(Exception):
    """Stops parsing; the error is in `issues`."""


class _TooDeep(Exception):  # noqa: N818
    """The expression nests deeper than allowed; the message says which limit it is."""


_RULE_TOO_DEEP: Final = f"expression recursion limit exceeded: {MAX_DEPTH}"
_TREE_TOO_DEEP: Final = "max recursion depth exceeded"


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
    make_room(_deepest_nesting(lexemes))
    parser = _Parser(source, lexemes, macros, issues)
    try:
        expression = parser.whole()
    except _SyntaxError:
        expression = None
    except _TooDeep as too_deep:
        issues.append(Issue(-1, -1, str(too_deep)))
        expression = None
    if issues or expression is None:
        raise compilation_failed(source, issues)
    return expression


def _deepest_nesting(lexemes: list[Lexeme]) -> int:
    """An upper bound of the levels the parser descends before its own limit stops it."""
    opened = sum(lexeme.text in "([{?" for lexeme in lexemes if lexeme.token is Token.SYMBOL)
    return min(opened, MAX_DEPTH) + 2


class _Parser:
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

    def _unexpected(self, message: str) -> _SyntaxError:
        line, column = self._source.position(self._next.offset)
        if not self._source.text:
            column = -1
        self._issues.append(Issue(line, column, f"Syntax error: {message}"))
        return _SyntaxError()

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
            raise _TooDeep(_RULE_TOO_DEEP)

    def _higher(self, *heights: int) -> None:
        """Adds an operator or access above the last parsed node and operands of these heights."""
        self._height = max((self._height, *heights)) + 1
        if self._height > MAX_DEPTH:
            raise _TooDeep(_TREE_TOO_DEEP)

    # --- the grammar, loosest first ---

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
        entries: list[Entry] = []
        height = 0
        while not self._next.is_symbol("}"):
            optional = self._accept("?") is not None
            key = self._expression()
            height = max(height, self._height)
            colon = self._expect(":")
            entries.append(Entry(colon.offset, key, self._expression(), optional))
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


_NUMBERS: Final = (Token.INT, Token.FLOAT)


def _balanced(function: str, operands: list[Expression], operators: list[int]) -> Expression:
    """One tree for a chain of `&&` or `||`, balanced, because chains may be long."""
    if not operators:
        return operands[0]
    middle = (len(operators) - 1) // 2
    left = _balanced(function, operands[: middle + 1], operators[:middle])
    right = _balanced(function, operands[middle + 1 :], operators[middle + 1 :])
    return Call(operators[middle], function, None, (left, right))
