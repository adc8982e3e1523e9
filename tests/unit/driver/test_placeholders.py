"""Placeholders in texts of a hardware description."""

from __future__ import annotations

import pytest

from allot.driver.placeholders import PlaceholderError, filled, literal

VALUES: dict[str, int | str] = {"i": 13, "node": 2, "nodeName": "server-2"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu-{i}", "gpu-13"),
        ("{nodeName}/gpu-{i}", "server-2/gpu-13"),
        ("{i//4}", "3"),
        ("{i % 4}", "1"),
        ("{i*2+1}", "27"),
        ("{i-13}", "0"),
        ("{i//2*16:02x}", "60"),
        ("{i:04d}", "0013"),
        ("{i:X}", "D"),
        ("0000:{i-11|1b|43|52}:00.0", "0000:52:00.0"),
        ("{node|a||c d}", "c d"),
        ("{{i}}", "{i}"),
        ("{{{i}}}", "{13}"),
        ("a}}", "a}}"),
        ("no placeholder", "no placeholder"),
    ],
)
def test_filled(text: str, expected: str) -> None:
    assert filled(text, VALUES) == expected


def test_everything_inside_is_filled() -> None:
    written = {"gpu-{i}": [{"a": "{node}"}, 3, True, None]}

    assert filled(written, VALUES) == {"gpu-13": [{"a": "2"}, 3, True, None]}


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{j}",
        "{i.x}",
        "{i/2}",
        "{i//0}",
        "{nodeName+1}",
        "{i:s}",
        "{i:999999999d}",
        "{i|a|b}",
        "{i-14|a}",
        "{nodeName|a}",
    ],
)
def test_what_cannot_be_filled(text: str) -> None:
    with pytest.raises(PlaceholderError) as error:
        filled(text, VALUES)

    assert text in str(error.value)


@pytest.mark.parametrize("text", ["", "a", "{i}", "{{", "}}", "a}}{b", "{{i}}", "{nodeName|"])
def test_literal_texts_have_no_placeholders(text: str) -> None:
    assert filled(literal(text), {}) == text
