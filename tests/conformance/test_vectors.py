"""Every vector is answered like Kubernetes v1.38."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from allot.cli.vectors import VectorAnswerer
from allot.rules import RuleSet

DATA = Path(__file__).parent / "data"
FILES = sorted((DATA / "validation").glob("*.jsonl.gz")) + sorted(
    (DATA / "quantity").glob("*.jsonl.gz")
)

# The detail carries a dump of Go structs behind its first line, which we do not imitate.
FIRST_LINE_ONLY = {("pod_update", "containerClaimsImmutable")}


# Of syntax errors in CEL the place counts; the words are the parser's own.
SYNTAX_ERROR = re.compile(r"compilation failed: ERROR: <input>:\d+:\d+: Syntax error")


def error_key(error: dict[str, str], first_line_only: bool) -> tuple[str, str, str]:
    detail = error["detail"].partition("\n")[0] if first_line_only else error["detail"]
    syntax_error = SYNTAX_ERROR.match(detail)
    return error["type"], error["field"], syntax_error[0] if syntax_error else detail


def difference(name: str, vector: dict[str, Any], answer: dict[str, Any]) -> str:
    """What is wrong with an answer; empty if nothing is."""
    expected = dict(vector["expect"])
    answer = dict(answer)
    case = (name, vector.get("id", ""))
    if "errors" in expected:
        answer.pop("id")
        expected.pop("orderVaries", None)
        short = case in FIRST_LINE_ONLY
        wanted = Counter(error_key(error, short) for error in expected.pop("errors") or [])
        given = Counter(error_key(error, short) for error in answer.pop("errors"))
        if wanted != given:
            return f"missing {list(wanted - given)}, too many {list(given - wanted)}"
    if name == "table" and "columns" not in expected:
        answer.pop("columns")
    return "" if answer == expected else f"expected {expected}, answered {answer}"


def read(path: Path) -> list[bytes]:
    with gzip.open(path) as file:
        return file.readlines()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_answers_like_kubernetes(path: Path) -> None:
    name = path.name.removesuffix(".jsonl.gz")
    answerer = VectorAnswerer()
    wrong = {}
    for number, line in enumerate(read(path), 1):
        vector = json.loads(line)
        answer = json.loads(json.dumps(answerer.answer(line)))
        case = vector.get("id", f"line {number}")
        if problem := difference(name, vector, answer):
            wrong[case] = problem

    assert wrong == {}


def test_exceptions_exist() -> None:
    """A list of exceptions must not outlive them."""
    known = {
        (path.name.removesuffix(".jsonl.gz"), json.loads(line).get("id"))
        for path in FILES
        for line in read(path)
    }

    assert known >= FIRST_LINE_ONLY


DROPPED_BY_KUBERNETES = [
    ("claim_create", "derived/off"),
    ("claim_create", "derived/sub/off"),
    ("claim_create_v1beta1", "derived/off"),
    ("template_create", "v1beta1/derived/off"),
]


@pytest.mark.parametrize(("name", "case"), DROPPED_BY_KUBERNETES)
def test_seeds_refuse_derived_attributes_while_their_gate_is_off(name: str, case: str) -> None:
    """KEP-6080; v1.38 drops them, as these vectors say."""
    line = next(
        line
        for line in read(DATA / "validation" / f"{name}.jsonl.gz")
        if json.loads(line)["id"] == case
    )

    errors = VectorAnswerer(rules=RuleSet.SEEDS).answer(line)["errors"]

    assert [error["type"] for error in errors] == ["Forbidden"]
    assert errors[0]["field"].endswith("derivedAttributes")


def test_gates_count_for_quota() -> None:
    vector: dict[str, Any] = {
        "classes": [
            {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
        ],
        "items": [
            "gpu.deviceclass.resource.k8s.io/devices",
            "requests.example.com/gpu",
            "requests.deviceclass.resource.kubernetes.io/gpu",
        ],
    }
    off = vector | {"features": {"DRAExtendedResource": False}}
    answerer = VectorAnswerer()

    assert answerer.answer(json.dumps(vector).encode()) == {"matching": vector["items"]}
    assert answerer.answer(json.dumps(off).encode()) == {"matching": vector["items"][:1]}
