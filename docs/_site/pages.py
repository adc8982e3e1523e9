"""Assembles the pages of the documentation's site for Sphinx: `python docs/_site/pages.py DIRECTORY`.

Pages are plain Markdown, which also reads well in a repository. Files outside docs/ that they link to
become pages, too (manifests are shown as code), and links are rewritten to point there, so that the
site has no link out of itself. The table of contents is `CONTENTS`.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
CONTENTS: Final[dict[str, tuple[str, ...]]] = {
    "Guides": (
        "docs/guides/workloads.md",
        "docs/guides/operators.md",
        "docs/guides/drivers.md",
        "docs/guides/testing.md",
        "docs/mistakes.md",
        "docs/troubleshooting.md",
    ),
    "Features": (
        "docs/prioritized-list.md",
        "docs/consumable-capacity.md",
        "docs/binding-conditions.md",
        "docs/pool-status.md",
        "docs/derived-attributes.md",
    ),
    "Components": (
        "docs/apiserver.md",
        "docs/custom-resources.md",
        "docs/scheduler.md",
        "docs/controllers.md",
        "docs/nodes.md",
        "docs/drivers.md",
        "docs/driver-conformance.md",
        "docs/explain.md",
        "docs/questions.md",
        "docs/performance.md",
        "docs/dashboard.md",
        "docs/top.md",
        "docs/lint.md",
        "docs/operations.md",
        "docs/kubernetes.md",
    ),
    "Reference": (
        "docs/cli.md",
        "docs/cli-reference.md",
        "docs/python-api.md",
        "docs/testing.md",
        "docs/glossary.md",
    ),
    "Project": (
        "CONTRIBUTING.md",
        "docs/scope.md",
        "ARCHITECTURE.md",
        "docs/style.md",
        "docs/decisions/README.md",
        "bench/RESULTS.md",
        "CHANGELOG.md",
    ),
}
LANDING: Final = "docs/index.md"
_LINK: Final = re.compile(r"(?<=\]\()(?P<target>[^)#\s:]+)(?P<anchor>#[^)\s]*)?(?=\))")
_LANGUAGES: Final = {"yaml": "yaml", "py": "python", "toml": "toml"}


def pages() -> dict[str, str]:
    """The source of every page, by its name in the site."""
    texts: dict[str, str] = {}
    wanted = [LANDING, *(path for paths in CONTENTS.values() for path in paths)]
    while wanted:
        path = wanted.pop()
        if path in texts:
            continue
        texts[path] = (ROOT / path).read_text(encoding="utf-8")
        if path.endswith(".md"):
            wanted += (link for link in _links(path, texts[path]) if _is_page(link))
    made = {page_name(path): _page(path, text) for path, text in texts.items()}
    listed = {page_name(path) for paths in CONTENTS.values() for path in paths}
    for name in made.keys() - listed - {page_name(LANDING)}:
        made[name] = f"---\norphan: true\n---\n{made[name]}"
    made[page_name(LANDING)] += _table_of_contents()
    return made


def page_name(path: str) -> str:
    name = path.removeprefix("docs/")
    return name if name.endswith(".md") else f"{name}.md"


def _page(path: str, text: str) -> str:
    if not path.endswith(".md"):
        return f"# `{path}`\n\n```{_LANGUAGES.get(path.rsplit('.', 1)[-1], 'text')}\n{text}```\n"
    here = posixpath.dirname(page_name(path)) or "."

    def rewritten(link: re.Match[str]) -> str:
        target = _from_root(path, link["target"])
        if target.startswith("docs/images/"):
            return posixpath.relpath(target.removeprefix("docs/"), here)
        if not _is_page(target):
            return link[0]
        return posixpath.relpath(page_name(target), here) + (link["anchor"] or "")

    return _LINK.sub(rewritten, text)


def _links(path: str, text: str) -> list[str]:
    return [_from_root(path, link["target"]) for link in _LINK.finditer(text)]


def _from_root(path: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _is_page(path: str) -> bool:
    return not path.startswith(("..", "docs/images/")) and (ROOT / path).is_file()


def _table_of_contents() -> str:
    return "".join(
        f"\n```{{toctree}}\n:caption: {caption}\n:hidden:\n\n"
        + "".join(f"{page_name(path).removesuffix('.md')}\n" for path in paths)
        + "```\n"
        for caption, paths in CONTENTS.items()
    )


def main(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    for name, text in pages().items():
        page = directory / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "images", directory / "images")
    for name in ("conf.py", "style.css"):
        shutil.copy(Path(__file__).parent / name, directory / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
