from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site = load(DOCS / "_site" / "pages.py")


def test_every_page_is_in_the_table_of_contents_or_linked() -> None:
    made = site.pages()
    written = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}

    assert written <= made.keys()


def test_links_stay_within_the_site() -> None:
    made = site.pages()
    lost = []
    for name, text in made.items():
        without_code = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s:]+)(?:#[^)\s]*)?\)", without_code):
            path = (DOCS / name).parent / target
            relative = str(path.resolve().relative_to(DOCS))
            if relative not in made and not (DOCS / relative).exists():
                lost.append(f"{name}: {target}")

    assert lost == []


@pytest.mark.parametrize("picture", sorted(DOCS.glob("images/*.svg")), ids=lambda path: path.stem)
def test_pictures_have_a_title_and_colours_for_dark_pages(picture: Path) -> None:
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))  # noqa: S314 - our own file
    names = {element.tag.rpartition("}")[2] for element in root}

    assert {"title", "desc", "style"} <= names
    assert "prefers-color-scheme: dark" in picture.read_text(encoding="utf-8")


def test_pictures_are_what_the_script_draws(tmp_path: Path) -> None:
    draw = load(DOCS / "images" / "draw.py")
    for make in (
        draw.prioritized_list,
        draw.consumable_capacity,
        draw.binding_conditions,
        draw.pool_status,
        draw.derived_attributes,
    ):
        make().write(tmp_path)

    for drawn in tmp_path.iterdir():
        assert drawn.read_text() == (DOCS / "images" / drawn.name).read_text(), drawn.name


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the documentation's site needs allot[docs]")
    pytest.importorskip("furo", reason="the documentation's site needs allot[docs]")
    site.main(tmp_path / "pages")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html"]
    built = subprocess.run(
        [*command, str(tmp_path / "pages"), str(tmp_path / "site")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "index.html").exists()
