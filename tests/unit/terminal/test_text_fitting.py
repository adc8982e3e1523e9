"""Text in so many columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from allot.terminal.text_fitting import fit, fit_name, fit_right


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [
        pytest.param("abc", 5, "abc  ", id="filled"),
        pytest.param("abcdef", 4, "abc…", id="cut"),
        pytest.param("名前です", 5, "名前…", id="wide-characters"),
        pytest.param("a\x1bb", 8, "a\\x1bb  ", id="control-character"),
        pytest.param("abc", 0, "", id="no-room"),
    ],
)
def test_fit(text: str, width: int, fitted: str) -> None:
    assert fit(text, width) == fitted


def test_names_keep_their_end() -> None:
    assert fit_name("very-long-cluster-node-0012", 12) == "very…de-0012"


def test_numbers_are_at_the_right() -> None:
    assert fit_right("12", 5) == "   12"


@given(st.text(max_size=60) | st.just("x" * 10_000), st.integers(0, 40))
def test_the_width_is_exact(text: str, width: int) -> None:
    for fitted in (fit(text, width), fit_name(text, width), fit_right(text, width)):
        assert cell_len(fitted) == width
        assert fitted.isprintable()
