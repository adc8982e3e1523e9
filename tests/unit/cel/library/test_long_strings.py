"""Texts are read in time linear in their length, however wrong they are.

The lengths are such that reading in quadratic or cubic time would not end within a test's patience.
"""

from __future__ import annotations

import pytest

from allot.api.durations import parse_duration
from allot.api.quantity import MAX_TEXT, Quantity, QuantityError
from allot.cel.errors import EvalError
from allot.cel.library.conversions import FUNCTIONS as CONVERSIONS
from allot.cel.library.times import parse_timestamp

LONG = 1_000_000


@pytest.mark.parametrize("text", ["0" * (MAX_TEXT - 1) + "x", "1" * (MAX_TEXT - 1) + "x"])
def test_wrong_quantities(text: str) -> None:
    for _ in range(1_000):
        with pytest.raises(QuantityError):
            Quantity.parse(text)


@pytest.mark.parametrize("text", ["1" * LONG, "1.5" * LONG, "1s" * LONG + "x", "." * LONG])
def test_wrong_durations(text: str) -> None:
    assert parse_duration(text) is None


def test_wrong_timestamp() -> None:
    assert parse_timestamp("2020-01-01T00:00:00." + "1" * LONG + "x") is None


@pytest.mark.parametrize(
    "text", ["1" * LONG + "x", "1." + "1" * LONG + "x", "0x" + "1" * LONG + "x", "1e" + "1" * LONG]
)
def test_wrong_doubles(text: str) -> None:
    double = next(function for function in CONVERSIONS if function.name == "double")

    with pytest.raises(EvalError):
        double.bound(("string_to_double",)).call(text)
