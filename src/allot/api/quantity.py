"""Quantities: exact amounts such as `40Gi`, `500m` or `1e3`.

Every quantity is a whole number of billionths, because nothing finer survives parsing; arithmetic
and comparison are therefore integer arithmetic. The string is kept beside the value: one that is already
in its shortest form stays as written, any other is rewritten.
"""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Final, Literal

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent", ""]

_WRONG_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
_NO_NUMBER: Final = "unable to parse numeric part of quantity"

MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)

_NANO: Final = -9
"""The finest decimal scale there is; finer amounts are rounded away from zero."""

_MAX_EXPONENT: Final = 1000
"""Larger exponents are refused: no real amount needs them, and arithmetic would need their digits."""

MAX_TEXT: Final = 2 * _MAX_EXPONENT
"""Longer strings are refused, for the same reason."""

# Up to this many digits Kubernetes computes with int64, beyond with arbitrary precision. The two
# differ in how a value is written and rounded, so we must know which one it would use.
_INT64_DIGITS: Final = 18
_BINARY_INT64_DIGITS: Final = 15

_DECIMAL_EXPONENT_BY_SUFFIX: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_EXPONENT_BY_SUFFIX: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SUFFIX_BY_DECIMAL_EXPONENT: Final = {e: s for s, e in _DECIMAL_EXPONENT_BY_SUFFIX.items()}
_SUFFIX_BY_BINARY_EXPONENT: Final = {e: s for s, e in _BINARY_EXPONENT_BY_SUFFIX.items()} | {0: ""}
# Looser than the message _WRONG_FORMAT: digits may be missing, `Ki` alone is zero.
# Possessive quantifiers (`*+`): otherwise a malformed string takes cubic time.
_split: Final = re.compile(
    r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[+-]?+[0-9]*+)"
).fullmatch

_POWERS_OF_TEN: Final[tuple[int, ...]] = tuple(10**n for n in range(40))


class QuantityError(ValueError):
    """The string is not a quantity. Kubernetes clients see the message."""


def _power_of_ten(exponent: int) -> int:
    if exponent < len(_POWERS_OF_TEN):
        return _POWERS_OF_TEN[exponent]
    power: int = 10**exponent  # mypy fears that the exponent is negative
    return power


@total_ordering
class Quantity:
    """An exact amount and the way it is written. Immutable; equal and hashed by amount."""

    __slots__ = ("_scale", "_wide", "format", "nanos", "text")

    nanos: int
    format: Format
    text: str
    """The string form, if it has been needed yet: `str` has it always."""
    _scale: int  # the decimal scale the amount is held at
    _wide: bool  # held with arbitrary precision instead of int64

    def __init__(
        self, nanos: int, format_: Format, text: str, scale: int, wide: bool
    ) -> None:  # `Quantity.parse` and `Quantity.of` are the ways in
        self.nanos = nanos
        self.format = format_
        self.text = text
        self._scale = scale
        self._wide = wide

    @staticmethod
    def parse(text: str) -> Quantity:
        """The quantity in `text`; `QuantityError` if it is not one."""
        known = PARSED.get(text)
        if known is not None:
            return known
        quantity = _parse(text)
        if len(PARSED) >= _MAX_PARSED:
            PARSED.clear()
        if len(text) <= _MAX_REMEMBERED_TEXT:
            PARSED[text] = quantity
        return quantity

    @staticmethod
    def of(amount: int, format_: Format = "DecimalSI") -> Quantity:
        """A whole amount, such as a number of devices or bytes."""
        wide = not MIN_INT64 <= amount <= MAX_INT64
        return Quantity(amount * 10**9, format_, "", 0, wide)

    # --- formatting ---

    def __str__(self) -> str:
        """The string form: as read if that was canonical enough, else canonical."""
        if not self.text:
            self.text = self.canonical()
        return self.text

    def __repr__(self) -> str:
        return f"Quantity.parse({str(self)!r})"

    def canonical(self) -> str:
        """The shortest string in this format."""
        nanos = self.nanos
        if nanos == 0:
            return "0"
        if self.format == "BinarySI":
            whole, fraction = divmod(nanos, 10**9)
            if fraction == 0 and not -1024 < whole < 1024:
                exponent = 0
                while whole % 1024 == 0:
                    whole //= 1024
                    exponent += 10
                return f"{whole}{_SUFFIX_BY_BINARY_EXPONENT.get(exponent, '')}"
        number, exponent = _thousands(nanos, _NANO)
        if self.format in ("DecimalExponent", ""):
            return f"{number}e{exponent}" if exponent else str(number)
        # Kubernetes has no suffix beyond E and silently writes none there; so do we.
        return f"{number}{_SUFFIX_BY_DECIMAL_EXPONENT.get(exponent, '')}"

    def decimal_text(self) -> str:
        """All digits, with as many decimal places as the quantity carries: `1.500`."""
        places = max(0, -self._scale)
        sign = "-" if self.nanos < 0 else ""
        amount = abs(self.nanos) // 10 ** (9 - places) if self.nanos else 0
        digits = str(amount).rjust(places + 1, "0")
        return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else sign + digits

    @property
    def sign(self) -> int:
        return (self.nanos > 0) - (self.nanos < 0)

    def is_whole(self) -> bool:
        return self.nanos % 10**9 == 0

    def as_int64(self) -> int | None:
        """The amount, if Kubernetes holds it as a whole int64; None otherwise, even where it could."""
        if self._wide or (self._scale < 0):
            return None
        amount = self.nanos // 10**9
        return amount if MIN_INT64 <= amount <= MAX_INT64 else None

    def value(self) -> int:
        """The amount in whole units, rounded away from zero, as Kubernetes' own int64 arithmetic does it."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        return self.scaled_value(-3)

    def scaled_value(self, scale: int) -> int:
        """The amount in units of 10**scale, with the int64 rounding and overflow of Kubernetes."""
        if not self._wide or not self.nanos:
            return _divide_away_from_zero(self.nanos, _power_of_ten(scale - _NANO))
        places = max(0, -self._scale)
        unscaled = self.nanos // _power_of_ten(9 - places)
        excess = places + scale
        if excess == 0:
            return _wrap_int64(unscaled)
        if excess < 0:
            return _wrap_int64(_wrap_int64(unscaled) * _power_of_ten(-excess))
        if unscaled < MAX_INT64 and excess < 19:
            # Very negative amounts wrap around here. A bug of Kubernetes that results depend on.
            unscaled = _wrap_int64(unscaled)
            quotient, rest = divmod(abs(unscaled), _power_of_ten(excess))
            return (quotient if unscaled >= 0 else -quotient) + (rest != 0)
        quotient, rest = divmod(unscaled, _power_of_ten(excess))
        return _wrap_int64(quotient) + (rest != 0)

    # --- arithmetic ---

    def __add__(self, other: Quantity) -> Quantity:
        return self._sum(other, self.nanos + other.nanos)

    def __sub__(self, other: Quantity) -> Quantity:
        return self._sum(other, self.nanos - other.nanos)

    def _sum(self, other: Quantity, nanos: int) -> Quantity:
        # The left operand determines the format, unless it is zero.
        format_ = self.format if self.nanos else other.format
        scale = max(_NANO, min(self._scale, other._scale))
        wide = self._wide or other._wide or not _fits(nanos, scale)
        return Quantity(nanos, format_, "", scale, wide)

    def __mul__(self, factor: int) -> Quantity:
        nanos = self.nanos * factor
        wide = self._wide or not _fits(nanos, self._scale)
        return Quantity(nanos, self.format, "", self._scale, wide)

    def multiplies_in_int64(self, factor: int) -> bool:
        """Whether multiplying by `factor` stays within the int64 digits Kubernetes holds."""
        return _fits(self.nanos * factor, self._scale)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format, "", self._scale, self._wide)

    def round_up(self, scale: int) -> Quantity:
        """Rounded away from zero to a multiple of 10**scale. Itself if it already is at that scale."""
        if not self._wide and self._scale >= scale:
            return self
        unit = _power_of_ten(scale - _NANO)
        nanos = _divide_away_from_zero(self.nanos, unit) * unit
        return Quantity(nanos, self.format, "", scale, self._wide)

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


_GO_WHITE_SPACE: Final = " \t\n\v\f\r\x85\xa0"
_MAX_PARSED: Final = 65_536
_MAX_REMEMBERED_TEXT: Final = 64
PARSED: Final[dict[str, Quantity]] = {}
"""Parsed quantities by string, for hot paths. Strings repeat: slices are full of `80Gi`."""

ZERO: Final = Quantity(0, "", "0", 0, False)


def quantity_from_json(value: object) -> Quantity:
    """The quantity in a decoded JSON document: a string, a number, or null for zero.

    Numbers with a fraction or an exponent must be passed as written, as a string.
    """
    if isinstance(value, str):
        return Quantity.parse(value.strip(_GO_WHITE_SPACE))
    if value is None:
        return ZERO
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Quantity.parse(str(value))
    raise QuantityError(_WRONG_FORMAT)


def _fits(nanos: int, scale: int) -> bool:
    return not nanos or MIN_INT64 <= nanos // _power_of_ten(scale - _NANO) <= MAX_INT64


def _wrap_int64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def _divide_away_from_zero(value: int, divisor: int) -> int:
    return -(-value // divisor) if value >= 0 else value // divisor


def _thousands(amount: int, exponent: int) -> tuple[int, int]:
    """`amount * 10**exponent` with the fewest digits whose exponent is a multiple of three."""
    while amount % 1000 == 0:
        amount //= 1000
        exponent += 3
    while amount % 10 == 0:
        amount //= 10
        exponent += 1
    surplus = exponent % 3
    return amount * 10**surplus, exponent - surplus


def _exponent_suffix(suffix: str) -> int:
    if len(suffix) > 1 and suffix[0] in "eE":
        digits = suffix[2:] if suffix[1] in "+-" else suffix[1:]
        if digits.isascii() and digits.isdecimal():
            exponent = int(suffix[1:]) if len(digits) <= 6 else _MAX_EXPONENT + 1
            if suffix[1] == "-" and len(digits) > 6:
                exponent = -exponent
            if exponent <= _MAX_EXPONENT:
                return max(exponent, -_MAX_EXPONENT)
    raise QuantityError(_WRONG_SUFFIX)


def _parse(text: str) -> Quantity:
    match = _split(text) if len(text) <= MAX_TEXT else None
    if match is None or not text:
        raise QuantityError(_WRONG_FORMAT)
    sign, whole, decimals, suffix = match.groups()

    exponent = _DECIMAL_EXPONENT_BY_SUFFIX.get(suffix)
    format_: Format = "DecimalSI"
    if exponent is None:
        binary_exponent = _BINARY_EXPONENT_BY_SUFFIX.get(suffix)
        if binary_exponent is not None:
            return _parse_binary(text, sign == "-", whole, decimals or "", binary_exponent)
        exponent, format_ = _exponent_suffix(suffix), "DecimalExponent"

    scale = exponent
    digits = whole or "0"
    if decimals:
        scale -= len(decimals)
        digits += decimals
    amount = int(digits)
    if sign == "-":
        amount = -amount
    if scale < _NANO or len(digits) > _INT64_DIGITS:
        if not amount:
            return _wide_zero(text, format_, -scale)
        if scale < _NANO:
            nanos = _divide_away_from_zero(amount, _power_of_ten(_NANO - scale))
        else:
            nanos = amount * _power_of_ten(scale - _NANO)
        return Quantity(nanos, format_, "", _NANO, True)
    nanos = amount * _power_of_ten(scale - _NANO)
    # Canonical enough to stay: the digits as written are the digits of the canonical form.
    kept = text if amount % 1000 and scale % 3 == 0 and whole else ""
    return Quantity(nanos, format_, kept, scale, False)


def _wide_zero(text: str, format_: Format, places: int) -> Quantity:
    """Zero with arbitrary precision. Where that is needed, there must be a digit."""
    match = _split(text)
    assert match is not None
    if not any(character.isdecimal() for character in text[: match.start(4)]):
        raise QuantityError(_NO_NUMBER)
    return Quantity(0, format_, "", -max(0, places), True)


def _parse_binary(text: str, negative: bool, whole: str, decimals: str, exponent: int) -> Quantity:
    number = int(whole + decimals or "0")
    amount = (-number if negative else number) << exponent
    spare_digits = _BINARY_INT64_DIGITS - len(whole or "0") - exponent * 3 // 10 - 1
    if not decimals and spare_digits >= 0:
        # Kubernetes takes numbers that are no multiple of eight for canonical.
        kept = text if number % 8 else ""
        return Quantity(amount * 10**9, "BinarySI", kept, 0, False)
    places = len(decimals)
    if not number:
        return _wide_zero(text, "BinarySI", places)
    if places <= -_NANO:
        nanos = amount * _power_of_ten(-_NANO - places)
    else:
        nanos = _divide_away_from_zero(amount, _power_of_ten(places + _NANO))
    limit = MAX_INT64 * 10**9
    if abs(nanos) > limit:
        return Quantity(limit if nanos > 0 else -limit, "BinarySI", "", 0, True)
    # Less than one is not written with a binary suffix.
    format_: Format = "DecimalSI" if 0 < abs(nanos) < 10**9 else "BinarySI"
    return Quantity(nanos, format_, "", _NANO, True)
