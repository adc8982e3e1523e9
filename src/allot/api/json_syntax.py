"""What is wrong with a JSON document, in Go's words."""

from __future__ import annotations

import re
from typing import Final

END: Final = "unexpected end of JSON input"
_space: Final = re.compile(rb"[ \t\r\n]*")
_plain: Final = re.compile(rb'[^"\\\x00-\x1f]*')
_digits: Final = re.compile(rb"[0-9]*")
_LITERALS: Final = {b"t": b"true", b"f": b"false", b"n": b"null"}


def syntax_problem(body: bytes) -> str:
    """The first problem of a document; empty if it is JSON."""
    try:
        _Scanner(body).scan()
    except _SyntaxProblemError as problem:
        return str(problem)
    return ""


class _SyntaxProblemError(Exception):
    """The scan ends here."""


class _Scanner:
    """Reads a document without recursion; nesting is on a stack."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def scan(self) -> None:
        closers: list[bytes] = []
        self._value(closers)
        while closers:
            self._skip_space()
            closer = closers[-1]
            where = "array element" if closer == b"]" else "object key:value pair"
            found = self._next(f"after {where}", closer + b",")
            if found == closer:
                closers.pop()
            else:
                if closer == b"}":
                    self._key()
                self._value(closers)
        self._skip_space()
        if self._at < len(self._body):
            raise self._unexpected("after top-level value")

    def _value(self, closers: list[bytes]) -> None:
        """One value, or the beginning of one that contains others."""
        while True:
            self._skip_space()
            first = self._peek()
            if first == b"{":
                self._at += 1
                self._skip_space()
                if self._peek() == b"}":
                    self._at += 1
                    return
                closers.append(b"}")
                self._key()
            elif first == b"[":
                self._at += 1
                self._skip_space()
                if self._peek() == b"]":
                    self._at += 1
                    return
                closers.append(b"]")
            else:
                self._scalar(first)
                return

    def _key(self) -> None:
        self._skip_space()
        if self._peek() != b'"':
            raise self._unexpected("looking for beginning of object key string")
        self._string()
        self._skip_space()
        self._next("after object key", b":")

    def _scalar(self, first: bytes) -> None:
        if first == b'"':
            self._string()
        elif first in _LITERALS:
            self._literal(_LITERALS[first])
        elif first == b"-" or first.isdigit():
            self._number()
        else:
            raise self._unexpected("looking for beginning of value")

    def _literal(self, word: bytes) -> None:
        for index in range(1, len(word)):
            self._at += 1
            expected = word[index : index + 1]
            # Go sees a space where a document ends in a literal.
            found = self._body[self._at : self._at + 1] or b" "
            if found != expected:
                text = f"in literal {word.decode()} (expecting '{expected.decode()}')"
                raise _SyntaxProblemError(f"invalid character {_quoted(found)} {text}")
        self._at += 1

    def _number(self) -> None:
        if self._peek() == b"-":
            self._at += 1
            if not self._peek().isdigit():
                raise self._unexpected("in numeric literal")
        if self._peek() == b"0":
            self._at += 1
        else:
            self._skip_digits()
        if self._rest() == b".":
            self._at += 1
            if not self._peek().isdigit():
                raise self._unexpected("after decimal point in numeric literal")
            self._skip_digits()
        if self._rest() in (b"e", b"E"):
            self._at += 1
            if self._rest() in (b"+", b"-"):
                self._at += 1
            if not self._peek().isdigit():
                raise self._unexpected("in exponent of numeric literal")
            self._skip_digits()

    def _string(self) -> None:
        self._at += 1
        while True:
            found = _plain.match(self._body, self._at)
            assert found is not None
            self._at = found.end()
            match self._peek():
                case b'"':
                    self._at += 1
                    return
                case b"\\":
                    self._at += 1
                    self._escape()
                case _:
                    raise self._unexpected("in string literal")

    def _escape(self) -> None:
        found = self._next("in string escape code", b'"\\/bfnrtu')
        if found == b"u":
            for _ in range(4):
                self._next("in \\u hexadecimal character escape", b"0123456789abcdefABCDEF")

    # --- characters ---

    def _rest(self) -> bytes:
        """The next character; none at the end."""
        return self._body[self._at : self._at + 1]

    def _peek(self) -> bytes:
        found = self._rest()
        if not found:
            raise _SyntaxProblemError(END)
        return found

    def _next(self, where: str, allowed: bytes) -> bytes:
        found = self._peek()
        if found not in allowed:
            raise self._unexpected(where)
        self._at += 1
        return found

    def _skip_space(self) -> None:
        found = _space.match(self._body, self._at)
        assert found is not None
        self._at = found.end()

    def _skip_digits(self) -> None:
        found = _digits.match(self._body, self._at)
        assert found is not None
        self._at = found.end()

    def _unexpected(self, where: str) -> _SyntaxProblemError:
        return _SyntaxProblemError(f"invalid character {_quoted(self._peek())} {where}")


_ESCAPES: Final = {"'": r"\'", "\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}


def _quoted(character: bytes) -> str:
    """One byte, as Go's errors quote it."""
    text = character.decode("latin-1")
    if text in _ESCAPES:
        return f"'{_ESCAPES[text]}'"
    if text.isprintable():
        return f"'{text}'"
    return f"'\\x{ord(text):02x}'" if ord(text) < 0x80 else f"'\\u{ord(text):04x}'"
