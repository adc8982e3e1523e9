"""SARIF output is valid by the schema of SARIF 2.1.0, which is in `data` as Microsoft's SARIF multitool ships it."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from allot.cli.main import allot
from allot.lint.findings import Finding, Report, Severity
from allot.lint.rule_table import RULES
from allot.lint.sarif import sarif
from allot.questions.plan import RULES as PLAN_RULES

jsonschema = pytest.importorskip(
    "jsonschema",
    reason="jsonschema is not installed: SARIF output was not validated; install allot[dev]",
)

SCHEMA: Final = Path(__file__).parent / "data" / "sarif-2.1.0.json.gz"
MISTAKES: Final = Path(__file__).parents[3] / "examples" / "mistakes"


@pytest.fixture(scope="module")
def problems() -> Callable[[Any], list[str]]:
    """What is wrong with a document, by the schema."""
    schema = json.loads(gzip.decompress(SCHEMA.read_bytes()))
    validator_class = jsonschema.validators.validator_for(schema)
    validator_class.check_schema(schema)
    validator = validator_class(schema)
    return lambda document: [error.message for error in validator.iter_errors(document)]


def every_finding() -> list[Finding]:
    """Findings of every rule and severity, with and without objects, in all kinds of places."""
    sources = ("a b.yaml", "/srv/c.yaml", "<stdin>", "über/é.yaml")
    return [
        Finding(rule, severity, source, 3, 5, name, "spec.x" if name else "", "wrong")
        for rule in RULES
        for severity in Severity
        for source in sources
        for name in ("", "ResourceClaim/c")
    ]


@pytest.mark.parametrize("findings", [[], every_finding()], ids=["none", "all"])
def test_reports_are_valid(findings: list[Finding], problems: Callable[[Any], list[str]]) -> None:
    assert problems(sarif(Report(findings, 1, 0), "1.2.3")) == []


def test_rules_of_plans_are_valid(problems: Callable[[Any], list[str]]) -> None:
    document = sarif(Report([], 1, 0), "1.2.3", tool="allot plan", more=PLAN_RULES)

    assert problems(document) == []


def test_what_the_command_prints_is_valid(problems: Callable[[Any], list[str]]) -> None:
    command = ["lint", "-o", "sarif", str(MISTAKES)]
    document = json.loads(CliRunner().invoke(allot, command).output)

    assert document["runs"][0]["results"]
    assert problems(document) == []


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda run: run.pop("tool"), id="no-tool"),
        pytest.param(lambda run: run["results"][0].pop("message"), id="no-message"),
        pytest.param(lambda run: run["results"][0].update(level="fatal"), id="no-such-level"),
        pytest.param(lambda run: run.update(columns=1), id="no-such-field"),
    ],
)
def test_the_schema_refuses_others(
    spoil: Callable[[Any], object], problems: Callable[[Any], list[str]]
) -> None:
    document = copy.deepcopy(sarif(Report(every_finding()[:1], 1, 0), "1.2.3"))
    spoil(document["runs"][0])

    assert problems(document) != []
