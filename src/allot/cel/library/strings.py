"""Functions on strings. Positions count code points."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, cast

from allot.cel.declarations import function, overload
from allot.cel.errors import NO_SUCH_OVERLOAD, CostLimitError, EvalError
from allot.cel.library.formatting import format_text
from allot.cel.library.regexes import matches
from allot.cel.steps import PIECE, in_pieces
from allot.cel.values import MAX_CHARACTERS, CelList, Value, elements, type_of
from allot.deadline import Deadline


def _texts(*values: Value) -> None:
    for value in values:
        if type(value) is not str:
            raise EvalError(NO_SUCH_OVERLOAD)


def contains(text: Value, part: Value) -> bool:
    _texts(text, part)
    return cast("str", part) in cast("str", text)


def starts_with(text: Value, prefix: Value) -> bool:
    _texts(text, prefix)
    return cast("str", text).startswith(cast("str", prefix))


def ends_with(text: Value, suffix: Value) -> bool:
    _texts(text, suffix)
    return cast("str", text).endswith(cast("str", suffix))


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvalError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if part == "":
        return start
    if len(text) < len(part):
        return -1
    if not 0 <= start < len(text):
        raise EvalError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if part == "":
        return len(text) if start is None else start
    if len(text) < len(part):
        return -1
    if start is None:
        return text.rfind(part)
    if not 0 <= start < len(text):
        raise EvalError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part))


def _lower_ascii(text: str) -> str:
    return _in_ascii(bytes.lower, str.lower, text)


def _upper_ascii(text: str) -> str:
    return _in_ascii(bytes.upper, str.upper, text)


def _in_ascii(
    change: Callable[[bytes], bytes], change_ascii: Callable[[str], str], text: str
) -> str:
    """Changes only ASCII letters; in UTF-8 bytes only these are single-byte letters."""
    if text.isascii():
        return change_ascii(text)
    encoded = text.encode("utf-8", "surrogatepass")
    return change(encoded).decode("utf-8", "surrogatepass")


def _replace(deadline: Deadline, text: str, old: str, new: str, limit: int = -1) -> str:
    count = text.count(old) if old else len(text) + 1
    if limit >= 0:
        count = min(count, limit)
    length = len(text) + count * len(new)
    if length > MAX_CHARACTERS:
        raise CostLimitError
    if length <= PIECE:
        return text.replace(old, new, count)
    deadline()
    if old:
        parts = _parts(deadline, text, old, count)
        return _joined(deadline, parts, new)
    replaced: list[str] = []
    for start in range(0, min(count, len(text)), PIECE):
        deadline()
        piece = text[start : start + PIECE]
        replaced.append(piece.replace("", new, min(len(piece), count - start)))
    replaced.append(text[len(replaced) * PIECE :])
    if count > len(text):
        replaced.append(new)
    return "".join(replaced)


def _split(deadline: Deadline, text: str, separator: str, limit: int = -1) -> list[Value]:
    if limit == 0:
        return []
    if separator:
        most = len(text) if limit < 0 else limit - 1
        return cast("list[Value]", _parts(deadline, text, separator, most))
    single = len(text) if limit < 0 or limit >= len(text) else limit - 1
    characters: list[Value] = []
    for start in range(0, single, PIECE):
        if start:
            deadline()
        characters += text[start : min(start + PIECE, single)]
    if single < len(text):
        characters.append(text[single:])
    return characters


def _parts(deadline: Deadline, text: str, separator: str, most: int) -> list[str]:
    """The parts between at most so many separators."""
    if len(text) <= PIECE:
        return text.split(separator, most)
    parts: list[str] = []
    while most > 0:
        deadline()
        *before, text = text.split(separator, min(most, PIECE))
        if not before:
            break
        parts += before
        most -= len(before)
    return [*parts, text]


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        end = len(text)
        if not 0 <= start <= end:
            raise EvalError(f"index out of range: {start}")
        return text[start:]
    if start > end:
        raise EvalError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise EvalError(f"index out of range: {index}")
    return text[start:end]


_WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def _trim(text: str) -> str:
    return text.strip(_WHITE_SPACE)


def _join(deadline: Deadline, parts: CelList, separator: str = "") -> str:
    texts = elements(parts, deadline)
    length = len(separator) * len(texts)
    for piece in in_pieces(texts, deadline):
        if {*map(type, piece)} <= {str}:
            length += sum(map(len, cast("list[str]", piece)))
            continue
        part = next(part for part in piece if type(part) is not str)
        raise EvalError(f"unsupported type conversion from '{type_of(part).name}' to string")
    if length > MAX_CHARACTERS:
        raise CostLimitError
    return _joined(deadline, cast("list[str]", texts), separator)


def _joined(deadline: Deadline, texts: list[str], separator: str) -> str:
    return separator.join(separator.join(piece) for piece in in_pieces(texts, deadline))


_QUOTED: Final = {
    ord("\a"): "\\a", ord("\b"): "\\b", ord("\f"): "\\f", ord("\n"): "\\n", ord("\r"): "\\r",
    ord("\t"): "\\t", ord("\v"): "\\v", ord("\\"): "\\\\", ord('"'): '\\"',
}  # fmt: skip
_surrogates: Final = re.compile("[\ud800-\udfff]")


def _quote(deadline: Deadline, text: str) -> str:
    quoted = ['"']
    for start in range(0, len(text), PIECE):
        if start:
            deadline()
        piece = text[start : start + PIECE]
        quoted.append(_surrogates.sub("\ufffd", piece).translate(_QUOTED))
    return "".join([*quoted, '"'])


def _format(deadline: Deadline, text: str, arguments: CelList) -> str:
    return format_text(deadline, text, elements(arguments, deadline), localized=True)


def _format_plainly(deadline: Deadline, text: str, arguments: CelList) -> str:
    return format_text(deadline, text, elements(arguments, deadline), localized=False)


def _matches(text: Value, pattern: Value) -> bool:
    if type(pattern) is not str:
        raise EvalError(NO_SUCH_OVERLOAD)
    return matches(cast("str", text), pattern)


STANDARD: Final = (
    function(
        "contains",
        overload("contains_string", "string.(string) -> bool"),
        implementation=contains,
    ),
    function(
        "endsWith",
        overload("ends_with_string", "string.(string) -> bool"),
        implementation=ends_with,
    ),
    function(
        "startsWith",
        overload("starts_with_string", "string.(string) -> bool"),
        implementation=starts_with,
    ),
    function(
        "matches",
        overload("matches", "(string, string) -> bool"),
        overload("matches_string", "string.(string) -> bool"),
        implementation=_matches,
        trait=lambda value: type(value) is str,
    ),
)

EXTENDED: Final = (
    function("charAt", overload("string_char_at_int", "string.(int) -> string", _char_at)),
    function(
        "indexOf",
        overload("string_index_of_string", "string.(string) -> int", _index_of),
        overload("string_index_of_string_int", "string.(string, int) -> int", _index_of),
    ),
    function(
        "lastIndexOf",
        overload("string_last_index_of_string", "string.(string) -> int", _last_index_of),
        overload("string_last_index_of_string_int", "string.(string, int) -> int", _last_index_of),
    ),
    function(
        "lowerAscii",
        overload("string_lower_ascii", "string.() -> string", _lower_ascii),
    ),
    function(
        "upperAscii",
        overload("string_upper_ascii", "string.() -> string", _upper_ascii),
    ),
    function(
        "replace",
        overload(
            "string_replace_string_string",
            "string.(string, string) -> string",
            _replace,
            takes_deadline=True,
        ),
        overload(
            "string_replace_string_string_int",
            "string.(string, string, int) -> string",
            _replace,
            takes_deadline=True,
        ),
    ),
    function(
        "split",
        overload(
            "string_split_string", "string.(string) -> list(string)", _split, takes_deadline=True
        ),
        overload(
            "string_split_string_int",
            "string.(string, int) -> list(string)",
            _split,
            takes_deadline=True,
        ),
    ),
    function(
        "substring",
        overload("string_substring_int", "string.(int) -> string", _substring),
        overload("string_substring_int_int", "string.(int, int) -> string", _substring),
    ),
    function("trim", overload("string_trim", "string.() -> string", _trim)),
    function(
        "join",
        overload("list_join", "list(string).() -> string", _join, takes_deadline=True),
        overload("list_join_string", "list(string).(string) -> string", _join, takes_deadline=True),
    ),
    function(
        "strings.quote",
        overload("strings_quote", "(string) -> string", _quote, takes_deadline=True),
    ),
)

FORMAT: Final = (
    function(
        "format",
        overload("string_format", "string.(list(dyn)) -> string", _format, takes_deadline=True),
    ),
)
PLAIN_FORMAT: Final = (
    function(
        "format",
        overload(
            "string_format", "string.(list(dyn)) -> string", _format_plainly, takes_deadline=True
        ),
    ),
)
"""`format` as later versions of the language define it: without locale, without quotes."""
