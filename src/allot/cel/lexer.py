"""The lexer: from source to tokens, and the values of literals."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from allot.cel.errors import Issue
from allot.cel.source import Source
from allot.cel.values import MAX_INT, MAX_UINT, MIN_INT, Uint


class Token(Enum):
    __hash__ = object.__hash__  # there is one of each, and Enum's own is slow
    BYTES = "BYTES"
    FLOAT = "NUM_FLOAT"
    IDENTIFIER = "IDENTIFIER"
    INT = "NUM_INT"
    QUOTED_IDENTIFIER = "ESC_IDENTIFIER"
    STRING = "STRING"
    SYMBOL = "SYMBOL"
    """Operators, brackets and the words in, true, false, null."""
    UINT = "NUM_UINT"
    END = "<EOF>"


class Lexeme(NamedTuple):
    token: Token
    text: str
    offset: int

    def is_symbol(self, text: str) -> bool:
        return self.token is Token.SYMBOL and self.text == text


_WORDS: Final = frozenset({"in", "true", "false", "null"})

_ESCAPE = r"\\(?:[abfnrtv\"'`\\?]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
_STRING = (
    r"(?:"
    r"[rR](?:\"\"\"(?:.|\n)*?\"\"\"|'''(?:.|\n)*?'''|\"[^\"\n\r]*\"|'[^'\n\r]*')"
    rf"|\"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf"|\"(?:{_ESCAPE}|[^\\\"\n\r])*\"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
    r")"
)
_scan: Final = re.compile(
    rf"""
      (?P<space>(?:[ \t\r\n\f]+|//[^\n]*)+)
    | (?P<string>[bB]?{_STRING})
    | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
    | (?P<identifier>[a-zA-Z_][a-zA-Z0-9_]*)
    | (?P<quoted>`[a-zA-Z0-9_.\-/\ ]+`)
    | (?P<symbol>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
).match

_TOKEN_BY_GROUP: Final = {
    "string": Token.STRING,
    "float": Token.FLOAT,
    "uint": Token.UINT,
    "int": Token.INT,
    "identifier": Token.IDENTIFIER,
    "quoted": Token.QUOTED_IDENTIFIER,
    "symbol": Token.SYMBOL,
}
_PARTIAL_ESCAPE = r"\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{,3}|U[0-9a-fA-F]{,7}|[0-3][0-7]?)?"
_UNREADABLE: Final = rf"""(?:
      \"(?:{_ESCAPE}|[^\\\"\n\r])*(?:{_PARTIAL_ESCAPE})?
    | '(?:{_ESCAPE}|[^\\'\n\r])*(?:{_PARTIAL_ESCAPE})?
    | `[a-zA-Z0-9_.\-/\ ]*
    | [&|=]
    )?(?:.|\n)?
"""
"""The start of a token, with the character that ends it as an error."""


_SHOWN: Final = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


def tokenize(source: Source, issues: list[Issue]) -> list[Lexeme]:
    """All tokens and an END. Unrecognized characters are skipped and reported in `issues`."""
    text = source.text
    lexemes: list[Lexeme] = []
    offset = 0
    while offset < len(text):
        match = _scan(text, offset)
        if match is None:
            skipped = re.compile(_UNREADABLE, re.VERBOSE).match(text, offset)
            bad = skipped.group() if skipped else text[offset]
            line, column = source.position(offset)
            shown = bad.translate(_SHOWN)
            issues.append(
                Issue(line, column, f"Syntax error: token recognition error at: '{shown}'")
            )
            offset += len(bad)
            continue
        group = match.lastgroup or "space"
        if group != "space":
            word = match.group()
            lexemes.append(Lexeme(_token(group, word), word, offset))
        offset = match.end()
    lexemes.append(Lexeme(Token.END, "<EOF>", len(text)))
    return lexemes


def _token(group: str, word: str) -> Token:
    if word in _WORDS:
        return Token.SYMBOL
    if group == "string" and word[0] in "bB":
        return Token.BYTES
    return _TOKEN_BY_GROUP[group]


class LiteralError(ValueError):
    """The literal is well-formed but has no valid value."""


def int_value(text: str) -> int:
    """The value of an int literal, which may start with a minus."""
    negative = text.startswith("-")
    digits = text[1:] if negative else text
    if len(digits) > _MOST_DIGITS and not digits.startswith("0x"):
        digits = digits.lstrip("0") or "0"
        if len(digits) > _MOST_DIGITS:
            raise LiteralError("invalid int literal")
    number = int(digits, 16) if digits.startswith("0x") else int(digits)
    number = -number if negative else number
    if not MIN_INT <= number <= MAX_INT:
        raise LiteralError("invalid int literal")
    return number


_MOST_DIGITS: Final = 25
"""More significant digits fit no 64-bit number; Python need not convert them."""


def uint_value(text: str) -> Uint:
    digits = text[:-1]
    if len(digits) > _MOST_DIGITS and not digits.startswith("0x"):
        digits = digits.lstrip("0") or "0"
        if len(digits) > _MOST_DIGITS:
            raise LiteralError("invalid uint literal")
    number = int(digits, 16) if digits.startswith("0x") else int(digits)
    if number > MAX_UINT:
        raise LiteralError("invalid uint literal")
    return Uint(number)


def float_value(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise LiteralError("invalid double literal")
    return value


_SIMPLE_ESCAPES: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
_escapes: Final = re.compile(_ESCAPE + r"|\r\n?", re.DOTALL)


def string_value(text: str) -> str:
    body, raw = _body(text)
    if raw:
        return body.replace("\r\n", "\n").replace("\r", "\n")
    return _escapes.sub(_unescape, body)


def bytes_value(text: str) -> bytes:
    body, raw = _body(text[1:])
    if raw:
        return body.replace("\r\n", "\n").replace("\r", "\n").encode()
    parts: list[bytes] = []
    end = 0
    for match in _escapes.finditer(body):
        parts.append(body[end : match.start()].encode())
        parts.append(_unescape_bytes(match))
        end = match.end()
    parts.append(body[end:].encode())
    return b"".join(parts)


def _body(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    quoted = text[1:] if raw else text
    marks = 3 if quoted[:3] in ('"""', "'''") else 1
    return quoted[marks:-marks], raw


def _unescape(match: re.Match[str]) -> str:
    escape = match.group()
    if escape[0] == "\r":
        return "\n"
    code = _code(escape)
    if code is None:
        return _SIMPLE_ESCAPES.get(escape[1], escape[1])
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _unescape_bytes(match: re.Match[str]) -> bytes:
    escape = match.group()
    code = _code(escape)
    if code is not None and escape[1] in "uU":
        raise LiteralError("unable to unescape string")
    return bytes((code,)) if code is not None else _unescape(match).encode()


def _code(escape: str) -> int | None:
    """The code point of a numeric escape; None for others."""
    if escape[1] in "xXuU":
        return int.from_bytes(bytes.fromhex(escape[2:]), "big")
    if escape[1] in "0123":
        return int(escape[1:], 8)
    return None
