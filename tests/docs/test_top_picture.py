"""The picture of `allot top`: drawn from a screen, with what the page explains."""

from __future__ import annotations

import importlib
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tests.docs.terminal import PROJECT

IMAGES = PROJECT / "docs" / "images"
NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def top(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(IMAGES))
    return importlib.import_module("top")


def test_the_picture_shows_the_floor_plan(top: ModuleType) -> None:
    root = ElementTree.fromstring((IMAGES / "top.svg").read_text(encoding="utf-8"))  # noqa: S314
    shown = root.findtext(f"{NAMESPACE}desc") or ""

    assert all(text in shown for text in ("allot top", "1 Floor plan", *top.EXPECTED))
    assert all(symbol in shown for symbol in "·█wT")
    assert "images/top.svg" in (PROJECT / "docs" / "top.md").read_text(encoding="utf-8")


def test_styles_columns_and_what_is_selected(top: ModuleType) -> None:
    svg = top.draw("a  \x1b[31mred\x1b[0m\n\n \x1b[7;36m x \x1b[0m<&\n\n")

    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    words = [(each.text, each.get("class")) for each in root.iter(f"{NAMESPACE}text")]
    assert words == [("a", None), ("red", "red"), ("x", "reverse"), ("<&", None)]
    (selected,) = (
        each for each in root.iter(f"{NAMESPACE}rect") if "back" in str(each.get("class"))
    )
    assert selected.get("class") == "back cyan"
    assert float(selected.get("width", 0)) == pytest.approx(3 * 7.8)
