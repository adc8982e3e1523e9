"""Every example of docs/python-api.md does what the page shows, and the page names all of the public API."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import allot
from tests.docs.pages import blocks, read_page
from tests.docs.terminal import PROJECT

PAGE = PROJECT / "docs" / "python-api.md"
ANY = "…"


class _Checker(doctest.OutputChecker):
    """`…` stands for any text."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(
            want.replace(ANY, "..."), got, optionflags | doctest.ELLIPSIS
        ) or (want == got)


def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in read_page(PAGE).files.items():
        (tmp_path / name).write_text(content)
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(checker=_Checker())
    names: dict[str, object] = {}
    report: list[str] = []
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        if block.language == "python":
            text = "\n".join(block.lines).replace("  " + ANY, "  ...") + "\n"
            test = parser.get_doctest(text, names, PAGE.name, str(PAGE), block.line)
            runner.run(test, out=report.append, clear_globs=False)
            names = test.globs

    assert runner.tries > 20
    assert not report, "".join(report)


def test_every_public_name_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert [name for name in allot.__all__ if name not in text] == []


@pytest.mark.parametrize(
    "package",
    ["allot", "allot.testing", "allot.client", "allot.controllers.binding", "allot.driver"],
)
def test_public_names_exist(package: str) -> None:
    module = importlib.import_module(package)

    assert len(module.__all__) == len(set(module.__all__))
    for name in module.__all__:
        assert getattr(module, name) is not None
