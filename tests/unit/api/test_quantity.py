from __future__ import annotations

import pytest

from allot.api.quantity import Quantity, QuantityError, quantity_from_json


@pytest.mark.parametrize(
    ("text", "shown", "canonical"),
    [
        pytest.param("1.5Gi", "1536Mi", "1536Mi", id="fraction-of-binary"),
        pytest.param("1024Mi", "1Gi", "1Gi", id="next-binary-unit"),
        pytest.param("+5", "+5", "5", id="sign-is-kept"),
        pytest.param("1.500", "1.500", "1500m", id="canonical-digits-are-kept"),
        pytest.param("1500e-3", "1500e-3", "1500e-3", id="exponent"),
        pytest.param("0.1n", "1n", "1n", id="finest-amount-rounds-up"),
        pytest.param("Ki", "0", "0", id="no-digits"),
        pytest.param("+5Gi", "+5Gi", "5Gi", id="binary-text-is-kept"),
        pytest.param("+8Gi", "8Gi", "8Gi", id="but-not-multiples-of-eight"),
        pytest.param("0e-30", "0", "0", id="zero"),
        pytest.param("9Ei", "9223372036854775807", "9223372036854775807", id="binary-is-capped"),
    ],
)
def test_text(text: str, shown: str, canonical: str) -> None:
    quantity = Quantity.parse(text)

    assert (str(quantity), quantity.canonical()) == (shown, canonical)


def test_equal_amounts_are_equal_however_written() -> None:
    assert Quantity.parse("1Gi") == Quantity.parse("1048576Ki") == Quantity.parse("1073741824")
    assert len({Quantity.parse("1"), Quantity.parse("1000m"), Quantity.parse("1e0")}) == 1
    assert Quantity.parse("1") != "1"


def test_amounts_beyond_int64_stay_exact() -> None:
    large = Quantity.parse("18446744073709551616")

    assert large - Quantity.parse("1") < large
    assert (large + Quantity.parse("1n")).decimal_text() == "18446744073709551616.000000001"


@pytest.mark.parametrize(
    "text",
    [
        "Ei",
        "e-30",
        "1e999999999",
        "1e9223372036854775807",
        "1" * 5000,
        "1e" + "9" * 5000,
        "--1",
        "1 Gi",
    ],
)
def test_absurd_texts_are_refused_at_once(text: str) -> None:
    with pytest.raises(QuantityError):
        Quantity.parse(text)


def test_tiny_exponents_need_no_digits() -> None:
    assert str(Quantity.parse("1e-999999999")) == "1e-9"


@pytest.mark.parametrize("value", [True, {}, [], object()])
def test_only_texts_and_numbers_are_quantities(value: object) -> None:
    with pytest.raises(QuantityError):
        quantity_from_json(value)


def test_as_numbers() -> None:
    assert Quantity.parse("1500m").value() == 2
    assert Quantity.parse("-1500m").value() == -2
    assert Quantity.parse("1500m").milli_value() == 1500
    assert Quantity.parse("1k").as_int64() == 1000
    assert Quantity.parse("1500m").as_int64() is None
    assert Quantity.of(3) * 2 == Quantity.of(6)
    assert not Quantity.of(0)
    assert Quantity.of(2**70).canonical() == str(2**70)
    assert repr(Quantity.parse("2Gi")) == "Quantity.parse('2Gi')"
