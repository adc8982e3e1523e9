"""The recording at the top of README.md: drawn from real output, complete, readable on light and dark pages."""

from __future__ import annotations

import importlib.util
import re
from itertools import pairwise
from types import ModuleType
from xml.etree import ElementTree

import pytest
import yaml

from tests.docs.terminal import PROJECT

IMAGES = PROJECT / "docs" / "images"
NAMESPACE = "{http://www.w3.org/2000/svg}"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record", IMAGES / "record.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


record = _load()


def _words(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    return [element.text or "" for element in root.iter(f"{NAMESPACE}text")]


def test_recording_has_the_commands_of_the_script() -> None:
    words = _words((IMAGES / "recording.svg").read_text(encoding="utf-8"))

    commands = [after for before, after in pairwise(words) if before == "$"]
    assert commands == list(record.SESSION)
    assert any("is ready" in each for each in words)
    assert any("is pending" in each for each in words)
    assert not [each for each in words if re.search(r"Traceback|error:|/tmp/|/home/", each)]


def test_readme_begins_with_it() -> None:
    lines = (PROJECT / "README.md").read_text(encoding="utf-8").splitlines()

    assert any("(docs/images/recording.svg)" in line for line in lines[:5])


def test_styles_and_columns() -> None:
    svg = record.draw(
        [record.Recorded("x <y>", "a  \x1b[1;31mred\x1b[0m\r\n\x1b[36mb&c\x1b[0m\r\n")]
    )

    assert _words(svg) == ["$", "x <y>", "a", "red", "b&c"]
    assert f'x="{record.MARGIN + 3 * record.CELL_WIDTH:g}"' in svg
    assert 'class="bold red"' in svg
    assert 'class="cyan"' in svg
    assert "prefers-color-scheme: dark" in svg
    assert "prefers-reduced-motion" in svg


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param("one\r\ntwo\r\n", ["one", "two"], id="lines"),
        pytest.param("50 %\r100 %\r\n", ["100 %"], id="progress-is-overwritten"),
        pytest.param("1\n2\n3\n4\n", ["1", "2", "…"], id="cut"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_screen_lines(output: str, expected: list[str]) -> None:
    assert [line.plain for line in record.screen_lines(output, 3)] == expected


def test_manifests_are_valid_yaml() -> None:
    for content in record.FILES.values():
        assert [each["kind"] for each in yaml.safe_load_all(content)] == ["ResourceClaim", "Pod"]
