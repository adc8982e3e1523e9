"""SARIF 2.1.0: what its schema requires of a log, and what code hosts need to show it."""

from __future__ import annotations

import json
from typing import Any

from allot.lint.findings import Finding, Report, Severity
from allot.lint.rule_table import RULES
from allot.lint.sarif import sarif

FINDINGS = [
    Finding("missing-class", Severity.ERROR, "a b.yaml", 3, 5, "ResourceClaim/c", "spec.x", "no"),
    Finding("unreadable", Severity.ERROR, "/tmp/c.yaml", 1, 1, "", "", "not YAML"),  # noqa: S108
    Finding(
        "old-version", Severity.WARNING, "<stdin>", 2, 1, "ResourceClaim/c", "apiVersion", "old"
    ),
]


def log() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(sarif(Report(FINDINGS, 3, 0), "1.2.3")))
    return document


def test_what_the_schema_requires() -> None:
    document = log()
    (run,) = document["runs"]
    driver = run["tool"]["driver"]

    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    assert driver["name"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note", "none")
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in ("error", "warning", "note", "none")
        assert ids[result["ruleIndex"]] == result["ruleId"]
        for location in result["locations"]:
            region = location["physicalLocation"]["region"]
            assert region["startLine"] >= 1
            assert region["startColumn"] >= 1


def test_places_and_texts() -> None:
    first, second, third = log()["runs"][0]["results"]

    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.yaml"},
        "region": {"startLine": 3, "startColumn": 5},
    }
    assert first["message"]["text"] == "ResourceClaim/c spec.x: no"
    assert second["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == (
        "file:///tmp/c.yaml"
    )
    assert second["message"]["text"] == "not YAML"
    assert third["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "%3Cstdin%3E"


def test_all_rules_are_listed_also_without_findings() -> None:
    (run,) = sarif(Report([], 0, 0), "1")["runs"]

    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(RULES)
    assert run["results"] == []
