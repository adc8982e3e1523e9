"""Laws of quantities: ordering, arithmetic, and texts that parse back."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from allot.api.quantity import MAX_INT64, Quantity, QuantityError

numbers = st.integers(-(10**12), 10**12)
suffixes = st.sampled_from(["", "n", "u", "m", "k", "M", "Ki", "Mi", "Gi", "e3", "e-3", "E2", "e0"])
decimals = st.from_regex(r"(\.[0-9]{0,6})?", fullmatch=True)
quantities = st.builds(lambda n, d, s: Quantity.parse(f"{n}{d}{s}"), numbers, decimals, suffixes)


def amount(quantity: Quantity) -> Fraction:
    return Fraction(quantity.decimal_text())


@given(quantities, quantities)
def test_order_is_that_of_the_amounts(a: Quantity, b: Quantity) -> None:
    assert (a < b) == (amount(a) < amount(b))
    assert (a == b) == (amount(a) == amount(b))
    assert a != b or hash(a) == hash(b)


@given(quantities, quantities)
def test_sums_are_exact(a: Quantity, b: Quantity) -> None:
    assert amount(a + b) == amount(a) + amount(b)
    assert amount(a - b) == amount(a) - amount(b)
    assert a + b == b + a
    assert a - b == -(b - a)


@given(quantities, st.integers(-1000, 1000))
def test_products_are_exact(a: Quantity, factor: int) -> None:
    assert amount(a * factor) == amount(a) * factor


@given(quantities)
def test_the_canonical_text_parses_back(a: Quantity) -> None:
    if abs(amount(a)) <= MAX_INT64:  # larger binary quantities are capped when they are read
        assert Quantity.parse(a.canonical()) == a
        assert Quantity.parse(str(a)) == a
        assert Quantity.parse(a.canonical()).canonical() == a.canonical()


@given(quantities, st.integers(-9, 9))
def test_rounding_up_goes_away_from_zero_and_not_too_far(a: Quantity, scale: int) -> None:
    rounded = a.round_up(scale)
    unit = Fraction(10) ** scale

    assert amount(rounded) % unit == 0 or rounded is a
    assert abs(amount(a)) <= abs(amount(rounded)) < abs(amount(a)) + unit


@given(st.text(max_size=30))
def test_any_text_is_a_quantity_or_an_error(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert str(quantity)


@given(st.text(alphabet="0123456789.eEinumkKMGTP+-", max_size=12))
def test_quantity_like_texts_too(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert amount(quantity) == amount(Quantity.parse(text))
    assert quantity.decimal_text()
