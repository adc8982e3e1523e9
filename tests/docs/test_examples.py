"""The examples are valid, and there are some for every KEP."""

from __future__ import annotations

from pathlib import Path

import pytest

from allot import features
from allot.cli.manifests import read_manifests
from allot.lint.linter import Linter

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.rglob("*.yaml"))
MISTAKES = EXAMPLES / "mistakes"
"""Wrong on purpose: docs/mistakes.md shows what is said about them, and `tests/integration/test_mistakes.py` lints them."""
CONFIGURATIONS = {
    EXAMPLES / "binding-conditions" / "scheduler.yaml",
    EXAMPLES / "scheduler-plugin" / "scheduler.yaml",
}
"""Files that are no objects of the API."""
NOT_CHECKED = {EXAMPLES / "driver" / "node.yaml"}
"""Files with objects of other kinds only, which lint skips."""


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path not in CONFIGURATIONS and path.parent != MISTAKES],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_example_is_valid(path: Path) -> None:
    report = Linter(features.DEFAULTS).check(read_manifests([str(path)]))

    assert report.findings == []
    assert report.checked or path in NOT_CHECKED


@pytest.mark.parametrize("kep", ["4816", "5007", "5075", "5677", "6080"])
def test_every_kep_has_examples(kep: str) -> None:
    assert any(path.parent.name.startswith(kep) for path in FILES)


def test_examples_ask_only_for_what_their_devices_have() -> None:
    manifests = read_manifests([str(EXAMPLES)])
    right = [each for each in manifests if MISTAKES not in Path(each.source).parents]
    report = Linter(features.DEFAULTS).check(right)

    assert report.findings == []
