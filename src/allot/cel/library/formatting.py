"""`format`: strings with clauses such as `%s` or `%.2f`.

Two dialects exist. Kubernetes has the older one, which writes numbers in the en-US locale (`1,234.5`,
`2.7 × 10⁰⁰`) and quotes the elements of lists and maps. The newer one has neither locale nor quotes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Final, NamedTuple, cast

from allot.cel.errors import CostLimitError, EvalError
from allot.cel.library.conversions import bytes_to_string, double_text, to_text
from allot.cel.library.times import duration_text, timestamp_text
from allot.cel.steps import FEW, in_pieces, in_steps
from allot.cel.values import (
    MAX_CHARACTERS,
    CelList,
    Duration,
    Timestamp,
    Uint,
    Value,
    elements,
    from_key,
    is_list,
    leaves,
    type_of,
)
from allot.deadline import Deadline

CLAUSES: Final = "sdfebxXo"
_DEFAULT_PRECISION: Final = 6
_MAX_PRECISION: Final = 1000

WRONG_TYPE: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
    "types, durations, and timestamps, was given {}",
    "d": "decimal clause can only be used on integers, was given {}",
    "f": "fixed-point clause can only be used on doubles, was given {}",
    "e": "scientific clause can only be used on doubles, was given {}",
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "X": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
}


class Clause(NamedTuple):
    """One formatting clause: verb and precision."""

    kind: str
    precision: int | None


LONE_PERCENT: Final = "unexpected end of string"


def parse_format(text: str) -> list[str | Clause | EvalError]:
    """Literal strings and clauses, in order. A parse error is the last entry."""
    parts: list[str | Clause | EvalError] = []
    position = 0
    while position < len(text):
        percent = text.find("%", position)
        if percent < 0:
            parts.append(text[position:])
            break
        parts.append(text[position:percent])
        if text.startswith("%%", percent):
            parts.append("%")
            position = percent + 2
            continue
        try:
            clause, position = _parse_clause(text, percent + 1)
        except EvalError as error:
            parts.append(error)
            break
        parts.append(clause)
    return parts


def _parse_clause(text: str, position: int) -> tuple[Clause, int]:
    prefix = "could not parse formatting clause: "
    if position >= len(text):
        raise EvalError(LONE_PERCENT)
    precision: int | None = None
    if text[position] == ".":
        end = position + 1
        while end < len(text) and text[end] in "0123456789":
            end += 1
        if end >= len(text):
            raise EvalError(
                f"{prefix}error while parsing precision: could not find end of precision specifier"
            )
        digits = text[position + 1 : end]
        if not digits:
            raise EvalError(
                f"{prefix}error while parsing precision: error while converting precision to "
                'integer: strconv.Atoi: parsing "": invalid syntax'
            )
        if len(digits) > 5 or int(digits) > _MAX_PRECISION:
            raise EvalError(
                f"{prefix}error while parsing precision: precision {digits} is too large"
            )
        precision, position = int(digits), end
    kind = text[position]
    if kind not in CLAUSES:
        first_byte = chr(kind.encode("utf-8", "surrogatepass")[0])
        raise EvalError(f'{prefix}unrecognized formatting clause "{first_byte}"')
    return Clause(kind, precision), position + 1


_LONGEST_REMEMBERED: Final = 1_024


@lru_cache(maxsize=512)
def _remembered_parts(text: str) -> tuple[str | Clause | EvalError, ...]:
    return tuple(parse_format(text))


def format_text(
    deadline: Deadline, text: str, arguments: Sequence[Value], *, localized: bool
) -> str:
    """`text` with its clauses replaced; EvalError if an argument does not fit its clause."""
    remembered = len(text) <= _LONGEST_REMEMBERED
    parts = _remembered_parts(text) if remembered else parse_format(text)
    written: list[str] = []
    length = used = 0
    for number, part in enumerate(parts, start=1):
        if type(part) is str:
            filled = part
        elif used >= len(arguments):
            raise EvalError(f"index {used} out of range")
        elif isinstance(part, EvalError):
            raise EvalError(part.message)
        else:
            filled = _filled(deadline, cast("Clause", part), arguments[used], localized)
            used += 1
        written.append(filled)
        length += len(filled)
        if length > MAX_CHARACTERS:
            raise CostLimitError
        if number % FEW == 0:
            deadline()
    return "".join(written)


class _WrongType(Exception):  # noqa: N818
    def __init__(self, kind: str, value: Value) -> None:
        super().__init__(kind)
        self.kind, self.value = kind, value


def _filled(deadline: Deadline, clause: Clause, value: Value, localized: bool) -> str:
    kind = clause.kind
    if type(value) is str and kind == "s":
        return value
    if type(value) is int and kind in "sd":
        return str(value)
    try:
        return _fill(deadline, clause, value, localized)
    except _WrongType as wrong:
        message = WRONG_TYPE[wrong.kind].format(type_of(wrong.value).name)
        raise EvalError(f"error during formatting: {message}") from None


def _fill(deadline: Deadline, clause: Clause, value: Value, localized: bool) -> str:
    kind = clause.kind
    if kind == "s":
        for _ in leaves(value, deadline):  # fails on values that are too large
            pass
        return _text(deadline, value) if not localized else _quoted_text(deadline, value)
    if kind in "fe":
        precision = _DEFAULT_PRECISION if clause.precision is None else clause.precision
        return _double(kind, _as_double(kind, value, localized), precision, localized)
    if isinstance(value, int) and not isinstance(value, bool):
        return format(int(value), kind)
    if kind == "d" and not localized and isinstance(value, float) and not math.isfinite(value):
        return _special(value)
    if kind == "b" and isinstance(value, bool):
        return "1" if value else "0"
    if kind in "xX" and isinstance(value, str | bytes):
        digits = (value.encode() if isinstance(value, str) else value).hex()
        return digits.upper() if kind == "X" else digits
    raise _WrongType(kind, value)


def _as_double(kind: str, value: Value, localized: bool) -> float:
    if isinstance(value, float):
        return value
    if localized:
        if value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    raise _WrongType(kind, value)


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _double(kind: str, value: float, precision: int, localized: bool) -> str:
    if not math.isfinite(value):
        return _special(value).replace("Infinity", "∞") if localized else _special(value)
    # Through Decimal: Python's own formatting of floats is exact too, but not beyond 1e16 digits.
    rounded = (
        f"{Decimal(value).quantize(Decimal(1).scaleb(-precision), rounding=ROUND_HALF_EVEN):f}"
        if kind == "f" and precision < 20 and abs(value) < 1e15
        else format(value, f".{precision}{kind}")
    )
    if not localized:
        return rounded
    if kind == "f":
        sign = "-" if rounded.startswith("-") else ""
        whole, dot, fraction = rounded.removeprefix("-").partition(".")
        return f"{sign}{int(whole):,}{dot}{fraction}"
    mantissa, _, exponent = rounded.partition("e")
    raised = exponent.replace("+", "").translate(_SUPERSCRIPT)
    return f"{mantissa}\u202f×\u202f10{raised}"


_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _text(deadline: Deadline, value: Value) -> str:
    """`%s` in the newer dialect."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return _special(value) if not math.isfinite(value) else double_text(value)
    text = to_text(value)
    if text is not None:
        return text
    if is_list(value):
        return _list_text(deadline, cast("CelList", value), _text)
    if isinstance(value, dict):
        return _map_text(deadline, value, _text, _text, ": ")
    raise _WrongType("s", value)


def _quoted_text(deadline: Deadline, value: Value) -> str:
    """`%s` in Kubernetes' dialect: bare at the top level, a literal within lists and maps."""
    if value is None:
        return "null"
    text = _bytes_text(value) if isinstance(value, bytes) else to_text(value)
    if text is not None:
        return text
    if is_list(value):
        return _list_text(deadline, cast("CelList", value), _literal)
    if isinstance(value, dict):
        return _map_text(deadline, value, _key_literal, _literal, ":")
    raise _WrongType("s", value)


_Writer = Callable[[Deadline, Value], str]


def _list_text(deadline: Deadline, items: CelList, write: _Writer) -> str:
    pieces = in_pieces(elements(items, deadline), deadline)
    written = _bounded(
        ", ".join(_bounded(write(deadline, item) for item in in_steps(piece, deadline)))
        for piece in pieces
    )
    return "[" + ", ".join(written) + "]"


def _map_text(
    deadline: Deadline,
    entries: dict[Value, Value],
    write_key: _Writer,
    write: _Writer,
    separator: str,
) -> str:
    pairs = sorted(
        (write_key(deadline, from_key(key)), write(deadline, value))
        for key, value in in_steps([*entries.items()], deadline)
    )
    written = _bounded(f"{key}{separator}{value}" for key, value in pairs)
    return "{" + ", ".join(written) + "}"


def _bounded(texts: Iterable[str]) -> list[str]:
    """The strings; CostLimitError once their total length exceeds the limit of a string."""
    written: list[str] = []
    length = 0
    for text in texts:
        written.append(text)
        length += len(text)
        if length > MAX_CHARACTERS:
            raise CostLimitError
    return written


def _bytes_text(value: bytes) -> str:
    try:
        return bytes_to_string(value)
    except EvalError as error:
        message = f"could not convert argument {go_quoted(error.message)} to string"
        raise EvalError(f"error during formatting: {message}") from None


def _key_literal(deadline: Deadline, key: Value) -> str:
    if isinstance(key, str | bool | int):
        return _literal(deadline, key)
    raise EvalError(
        f"error during formatting: no formatting function for map key of type {type_of(key).name}"
    )


def _double_literal(value: float) -> str:
    if math.isfinite(value):
        return f"{value:.6f}"
    return go_quoted("NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf")


_GO_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip


def go_quoted(text: str) -> str:
    """The string in double quotes, as Go's %q writes it."""
    if text.isascii():
        return f'"{text.translate(_ASCII_ESCAPES)}"'
    return '"' + "".join(map(_go_character, text)) + '"'


def _go_character(character: str) -> str:
    if character in _GO_ESCAPES:
        return _GO_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ASCII_ESCAPES: Final = {code: _go_character(chr(code)) for code in range(0x80)}

_LITERALS: Final[dict[type, Callable[..., str]]] = {
    str: go_quoted,
    bytes: lambda value: "b" + go_quoted(_bytes_text(value)),
    float: _double_literal,
    Timestamp: lambda value: f"timestamp({go_quoted(timestamp_text(value))})",
    Duration: lambda value: f"duration({go_quoted(duration_text(value))})",
    int: str,
    Uint: lambda value: str(int(value)),
}


def _literal(deadline: Deadline, value: Value) -> str:
    write = _LITERALS.get(type(value))
    if write is not None:
        return write(value)
    if value is None or isinstance(value, bool | dict) or is_list(value) or to_text(value):
        return _quoted_text(deadline, value)
    raise EvalError(f"error during formatting: no formatting function for {type_of(value).name}")
