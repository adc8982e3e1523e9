"""Regular expressions with RE2 semantics: linear in the length of the string for every pattern."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from allot.cel.declarations import function, overload
from allot.cel.errors import EvalError
from allot.cel.steps import FEW
from allot.cel.values import Value
from allot.deadline import Deadline

# The module's own `compile` is ten times slower per search than the object beneath it.
_RE2: Final[Any] = re2._re2.RE2
_ANYWHERE: Final = _RE2.Anchor.UNANCHORED


class RegexError(ValueError):
    """The pattern is invalid. The message is Go's."""


class Regex:
    """A compiled pattern."""

    __slots__ = ("_match", "is_in", "size")

    def __init__(self, pattern: str) -> None:
        options = re2.Options()
        options.log_errors = False
        options.max_mem = 8 << 20
        # Capture groups are not used, and need a matcher that is thirty times slower.
        options.never_capture = True
        problem = _refused_by_go(pattern)
        if problem is None:
            compiled = _RE2(_encoded(_with_names_once(pattern)), options)
            if not compiled.ok():
                problem = _go_text(compiled.error().decode("utf-8", "replace"), pattern)
        if problem is not None:
            raise RegexError(f"error parsing regexp: {problem}")
        self._match = match = compiled.Match
        self.size: int = compiled.ProgramSize()
        """The instructions that a match may have to follow at every character."""

        def is_in(text: str) -> bool:
            try:
                encoded = text.encode()
            except UnicodeEncodeError:
                encoded = _encoded(text)
            start: int = match(_ANYWHERE, encoded, 0, len(encoded))[0][0]
            return start >= 0

        self.is_in = is_in
        """Whether the pattern matches anywhere in a string. A function, because it is called most."""

    def first(self, text: str) -> str:
        """The leftmost match, or nothing."""
        encoded = _encoded(text)
        start, end = self._match(_ANYWHERE, encoded, 0, len(encoded))[0]
        return "" if start < 0 else encoded[start:end].decode("utf-8", "surrogatepass")

    def all(self, deadline: Deadline, text: str, limit: int = -1) -> list[Value]:
        """The non-overlapping matches from left to right; an empty match is never adjacent to another."""
        encoded = _encoded(text)
        found: list[Value] = []
        position, last_end = 0, -1
        while position <= len(encoded) and len(found) != limit:
            if len(found) % FEW == FEW - 1:
                deadline()
            start, end = self._match(_ANYWHERE, encoded, position, len(encoded))[0]
            if start < 0:
                break
            if start != end or start != last_end:
                found.append(encoded[start:end].decode("utf-8", "surrogatepass"))
                last_end = end
            position = end if end > position else _next_character(encoded, position)
        return found


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _next_character(encoded: bytes, position: int) -> int:
    position += 1
    while position < len(encoded) and encoded[position] & 0xC0 == 0x80:
        position += 1
    return position


_GO_CODES: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}
_any_byte: Final = re.compile(r"(?:[^\\]|\\[^C])*?\\C", re.DOTALL).match
_escape_or_name: Final = re.compile(r"\\.|\(\?P?<([A-Za-z0-9_]+)>", re.DOTALL)


def _refused_by_go(pattern: str) -> str | None:
    """The error for patterns that RE2 accepts in C++ but not in Go."""
    if _any_byte(pattern):
        return "invalid escape sequence: `\\C`"
    return None


def _with_names_once(pattern: str) -> str:
    """Group names are removed: Go allows duplicates, and no function uses them."""
    names = [match[1] for match in _escape_or_name.finditer(pattern) if match[1]]
    if len(names) == len(set(names)):
        return pattern
    return _escape_or_name.sub(lambda match: "(" if match[1] else match[0], pattern)


def _go_text(error: str, pattern: str) -> str:
    code, colon, argument = error.partition(": ")
    if argument in ("(?<=", "(?<!"):
        # Go has no lookbehind; it parses this as the start of a group name.
        rest = pattern[pattern.index(argument) :]
        return f"invalid named capture: `{rest[: rest.find('>') + 1] or rest}`"
    code = _GO_CODES.get(code, code)
    return f"{code}: `{argument}`" if colon else f"{code}: ``"


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Regex:
    return Regex(pattern)


def _compiled_here(pattern: str, prefix: str) -> Regex:
    try:
        return compiled(pattern)
    except RegexError as error:
        raise EvalError(f"{prefix}{error}") from None


def matches(text: str, pattern: str) -> bool:
    return _compiled_here(pattern, "").is_in(text)


def _find(text: str, pattern: str) -> str:
    return _compiled_here(pattern, "Illegal regex: ").first(text)


def _find_all(deadline: Deadline, text: str, pattern: str, limit: int = -1) -> list[Value]:
    return _compiled_here(pattern, "Illegal regex: ").all(deadline, text, limit)


FUNCTIONS: Final = (
    function("find", overload("string_find_string", "string.(string) -> string", _find)),
    function(
        "findAll",
        overload(
            "string_find_all_string",
            "string.(string) -> list(string)",
            _find_all,
            takes_deadline=True,
        ),
        overload(
            "string_find_all_string_int",
            "string.(string, int) -> list(string)",
            _find_all,
            takes_deadline=True,
        ),
    ),
)
