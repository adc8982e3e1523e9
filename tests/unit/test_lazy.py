"""Modules that are loaded when they are used."""

from __future__ import annotations

import sys

import pytest

from allot._lazy import load_when_used


def test_a_module_is_loaded_when_a_name_of_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    load_when_used("colorsys")
    import colorsys

    assert "rgb_to_hsv" not in vars(colorsys)
    assert colorsys.rgb_to_hsv(0, 0, 0) == (0, 0, 0)
    assert "rgb_to_hsv" in vars(colorsys)
    from colorsys import rgb_to_hsv

    assert rgb_to_hsv is colorsys.rgb_to_hsv
    assert sys.modules["colorsys"] is not colorsys
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        colorsys.missing  # type: ignore[attr-defined]  # noqa: B018


def test_a_loaded_module_stays() -> None:
    before = sys.modules["sys"]
    load_when_used("sys")
    assert sys.modules["sys"] is before


def test_an_unknown_module_is_reported_when_it_is_used() -> None:
    load_when_used("allot_has_no_such_module")
    try:
        import allot_has_no_such_module as unknown  # type: ignore[import-not-found]

        with pytest.raises(ModuleNotFoundError):
            unknown.anything  # noqa: B018
    finally:
        sys.modules.pop("allot_has_no_such_module", None)
