"""The examples are valid, and there are some for every KEP."""

from __future__ import annotations

from pathlib import Path

import pytest

from allot import features
from allot.cli.manifests import read_manifests
from allot.lint.findings import Report
from allot.lint.linter import Linter

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.rglob("*.yaml"))
CONFIGURATIONS = {EXAMPLES / "binding-conditions" / "scheduler.yaml"}
"""Files that are no objects of the API."""
LACKING = {
    ("4816-prioritized-list/gpu-and-nic.yaml", "selector-never"),
    ("4816-prioritized-list/gpu-and-nic.yaml", "constraint-values"),
    ("4816-prioritized-list/story-2.yaml", "missing-alternative-class"),
}
"""Warnings of alternatives that cannot be had: that another one is taken is what these examples show."""
FROM_HARDWARE = ("4816-prioritized-list/as-many-as-possible.yaml", "missing-class")
"""The class comes with the hardware of the demo cluster."""


def warnings(report: Report) -> set[tuple[str, str]]:
    return {
        (str(Path(finding.source).relative_to(EXAMPLES)), finding.rule)
        for finding in report.findings
    }


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path not in CONFIGURATIONS],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_example_is_valid(path: Path) -> None:
    report = Linter(features.DEFAULTS).check(read_manifests([str(path)]))

    assert warnings(report) <= LACKING
    assert report.errors == 0
    assert report.checked


@pytest.mark.parametrize("kep", ["4816", "5007", "5075", "5677", "6080"])
def test_every_kep_has_examples(kep: str) -> None:
    assert any(path.parent.name.startswith(kep) for path in FILES)


def test_examples_ask_only_for_what_their_devices_have() -> None:
    report = Linter(features.DEFAULTS).check(read_manifests([str(EXAMPLES)]))

    assert warnings(report) == {*LACKING, FROM_HARDWARE}
    assert report.errors == 0
