"""What Kubernetes v1.38 accepts is no error of lint's."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from allot.cli.vectors import VectorAnswerer
from allot.features import FeatureGates
from allot.lint.linter import Linter
from allot.lint.manifests import parse_manifests

FILES = sorted((Path(__file__).parents[2] / "conformance/data/validation").glob("*_create*.gz"))


def accepted(path: Path) -> Iterator[dict[str, Any]]:
    """The vectors that are accepted, there and here."""
    answerer = VectorAnswerer()
    with gzip.open(path) as lines:
        for line in lines:
            vector: dict[str, Any] = json.loads(line)
            expected = vector["expect"]
            refused = any(expected.get(key) for key in ("errors", "decodeError", "strictErrors"))
            if not refused and not answerer.answer(line).get("errors"):
                yield vector


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_accepted_objects(path: Path) -> None:
    wrong = {}
    count = 0
    for vector in accepted(path):
        api_version, _, kind = vector["gvk"].rpartition("/")
        document = {**vector["object"], "apiVersion": api_version.lstrip("/"), "kind": kind}
        gates = FeatureGates(name for name, on in vector["features"].items() if on)
        report = Linter(gates).check(parse_manifests("f", json.dumps(document).encode()))
        count += report.checked
        if report.errors:
            wrong[vector["id"]] = [each for each in report.findings if each.severity == "error"]

    assert wrong == {}
    assert count
