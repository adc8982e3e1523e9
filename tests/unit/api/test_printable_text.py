"""Text of unknown origin in a terminal: shown, never obeyed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.printable_text import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("gpu-0", "gpu-0", id="plain"),
        pytest.param("[bold]GPU[/]", "[bold]GPU[/]", id="markup-stays-text"),
        pytest.param("a\x1b[31mb", "a\\x1b[31mb", id="escape-sequence"),
        pytest.param("a\nb\tc\r", "a\\nb\\tc\\r", id="line-breaks"),
        pytest.param("\x9b2J", "\\x9b2J", id="c1-control"),
        pytest.param("a\u202eb", "a\\u202eb", id="right-to-left-override"),
        pytest.param("\U000e0041", "\\U000e0041", id="tag"),
        pytest.param("\ud800", "\\ud800", id="lone-surrogate"),
        pytest.param("名前 é", "名前 é", id="letters-of-any-script"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_the_result_has_nothing_that_a_terminal_obeys(text: str) -> None:
    assert printable(text).isprintable()
