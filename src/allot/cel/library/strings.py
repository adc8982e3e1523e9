"""Functions on texts. Positions count code points."""

from __future__ import annotations

import re
from typing import Final, cast

from allot.cel.declarations import function, overload
from allot.cel.errors import NO_SUCH_OVERLOAD, CostLimitError, EvalError
from allot.cel.library.formatting import format_text
from allot.cel.library.regexes import matches
from allot.cel.values import MAX_CHARACTERS, CelList, Value, elements, type_of


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


_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code + 32: code for code in range(ord("A"), ord("Z") + 1)}


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    count = text.count(old) if old else len(text) + 1
    if limit >= 0:
        count = min(count, limit)
    if len(text) + count * len(new) > MAX_CHARACTERS:
        raise CostLimitError
    return text.replace(old, new, count)


def _split(text: str, separator: str, limit: int = -1) -> list[Value]:
    if limit == 0:
        return []
    if separator == "":
        if limit < 0 or limit >= len(text):
            return list(text)
        return [*text[: limit - 1], text[limit - 1 :]]
    return cast("list[Value]", text.split(separator, -1 if limit < 0 else limit - 1))


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


def _join(parts: CelList, separator: str = "") -> str:
    texts = elements(parts)
    for part in texts:
        if type(part) is not str:
            raise EvalError(f"unsupported type conversion from '{type_of(part).name}' to string")
    length = sum(map(len, cast("list[str]", texts))) + len(separator) * len(texts)
    if length > MAX_CHARACTERS:
        raise CostLimitError
    return separator.join(cast("list[str]", texts))


_QUOTED: Final = {
    ord("\a"): "\\a", ord("\b"): "\\b", ord("\f"): "\\f", ord("\n"): "\\n", ord("\r"): "\\r",
    ord("\t"): "\\t", ord("\v"): "\\v", ord("\\"): "\\\\", ord('"'): '\\"',
}  # fmt: skip
_surrogates: Final = re.compile("[\ud800-\udfff]")


def _quote(text: str) -> str:
    return '"' + _surrogates.sub("\ufffd", text).translate(_QUOTED) + '"'


def _format(text: str, arguments: CelList) -> str:
    return format_text(text, elements(arguments), localized=True)


def _format_plainly(text: str, arguments: CelList) -> str:
    return format_text(text, elements(arguments), localized=False)


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
        overload("string_lower_ascii", "string.() -> string", lambda text: text.translate(_LOWER)),
    ),
    function(
        "upperAscii",
        overload("string_upper_ascii", "string.() -> string", lambda text: text.translate(_UPPER)),
    ),
    function(
        "replace",
        overload("string_replace_string_string", "string.(string, string) -> string", _replace),
        overload(
            "string_replace_string_string_int", "string.(string, string, int) -> string", _replace
        ),
    ),
    function(
        "split",
        overload("string_split_string", "string.(string) -> list(string)", _split),
        overload("string_split_string_int", "string.(string, int) -> list(string)", _split),
    ),
    function(
        "substring",
        overload("string_substring_int", "string.(int) -> string", _substring),
        overload("string_substring_int_int", "string.(int, int) -> string", _substring),
    ),
    function("trim", overload("string_trim", "string.() -> string", _trim)),
    function(
        "join",
        overload("list_join", "list(string).() -> string", _join),
        overload("list_join_string", "list(string).(string) -> string", _join),
    ),
    function("strings.quote", overload("strings_quote", "(string) -> string", _quote)),
)

FORMAT: Final = (
    function("format", overload("string_format", "string.(list(dyn)) -> string", _format)),
)
PLAIN_FORMAT: Final = (
    function("format", overload("string_format", "string.(list(dyn)) -> string", _format_plainly)),
)
"""`format` as later versions of the language define it: without locale, without quotes."""
