"""Words: source code and documentation are in plain technical English (docs/style.md, Words)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

PROJECT: Final = Path(__file__).parents[2]

SEARCHED: Final = (
    ("src", ".py"),
    ("src", ".txt"),
    ("src", ".yaml"),
    ("src", ".js"),
    ("src", ".html"),
    ("scripts", ""),
    ("tests", ".py"),
    ("bench", ".py"),
    ("docs", ".md"),
    ("examples", ".md"),
    ("examples", ".yaml"),
    ("deploy", ".yaml"),
    ("bench", ".md"),
)
PAGES: Final = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")

BANNED: Final = (
    # Name the component, the user or the object.
    "nobody",
    "somebody",
    "whoever",
    "whomever",
    "anybody",
    "everybody",
    # "timed out after 60 s waiting for …"
    "in vain",
    # "is at", "exists", "duplicate"
    "stands there",
    # "None if it is not set", "if it does not exist"
    "there is none",
    "what is known of",
    "what becomes of",  # "what happens to"
    # "a string"
    "a text",
    # "did you mean X?"
    "is meant?",
)
_BANNED: Final = re.compile(
    r"\b(?:"
    + "|".join(re.escape(word).replace(r"\ ", r"\s+(?:#\s+)?") for word in BANNED)
    + r")(?!\w)",
    re.IGNORECASE,
)

EXCEPTIONS: Final = {
    "docs/style.md": "quotes what not to write",
    "tests/conformance/admission_cases.py": "names a user of a recorded answer",
    "tests/custom_resources/scenarios.py": "a value of a recorded answer",
    "tests/unit/test_words.py": "lists what not to write",
}


def banned_words(text: str) -> list[tuple[int, str]]:
    """Line and words of everything that is on the list."""
    return [
        (text.count("\n", 0, found.start()) + 1, found.group()) for found in _BANNED.finditer(text)
    ]


def _files() -> list[str]:
    found = [
        file
        for folder, suffix in SEARCHED
        for file in (PROJECT / folder).rglob(f"*{suffix}")
        if file.is_file() and file.suffix != ".pyc"
    ]
    names = {file.relative_to(PROJECT).as_posix() for file in found}
    return sorted({*names, *PAGES} - EXCEPTIONS.keys())


def test_words_are_plain() -> None:
    files = _files()

    assert len(files) > 500
    problems = [
        f"{name}:{line}: {words!r}"
        for name in files
        for line, words in banned_words((PROJECT / name).read_text(encoding="utf-8"))
    ]
    assert problems == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Nobody reads it.", [(1, "Nobody")], id="capital"),
        pytest.param("It waits\nin\nvain.", [(2, "in\nvain")], id="wrapped"),
        pytest.param(
            "# None if there\n    # is none\n", [(1, "there\n    # is none")], id="wrapped-comment"
        ),
        pytest.param("in vainglory, a texture", [], id="part-of-a-word"),
    ],
)
def test_banned_words(text: str, expected: list[tuple[int, str]]) -> None:
    assert banned_words(text) == expected


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_exceptions_are_needed(name: str) -> None:
    assert banned_words((PROJECT / name).read_text(encoding="utf-8"))
