"""412 expressions in six variants, with the answers of Kubernetes v1.38."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

import pytest

from allot.cel import (
    AttributeValue,
    CelEvaluationError,
    DerivedAttribute,
    Origin,
    Program,
    Selector,
    compile_derived,
    compile_selector,
)
from allot.cli.cel_jsonl import answer_line, attribute_to_json, device_from_json
from allot.features import GATES, KUBERNETES_DEFAULTS, FeatureGates

DATA: Final = Path(__file__).parent / "data" / "cel"
CORPUS: Final[list[dict[str, Any]]] = [
    json.loads(line)
    for line in gzip.decompress((DATA / "corpus.jsonl.gz").read_bytes()).splitlines()
]
DEVICE: Final = json.loads((DATA / "device.json").read_text())

FEATURES: Final = {
    "new-all": dict.fromkeys(GATES, True),
    "new-default": {name: name in KUBERNETES_DEFAULTS for name in GATES},
    "stored": {},
}

# Go visits maps in random order, so what a macro costs that stops early depends on luck: on whether
# the entry it looks for comes first (low) or last (high).
COST_RANGES: Final = {
    'device.attributes["gpu.example.com"].exists(k, k == "model")': range(13, 52 + 1),
    'device.attributes["gpu.example.com"].exists(k, v, v == "A100")': range(13, 52 + 1),
    'device.capacity.exists(d, d == "vendor.com")': range(12, 15 + 1),
}


def up_to_wording(text: str) -> str:
    """A syntax error without the words of its parser: category and position stay."""
    before, marker, _ = text.partition("Syntax error: ")
    return before + marker


@pytest.mark.parametrize("case", CORPUS, ids=[case["expr"][:60] for case in CORPUS])
def test_answers_are_those_of_v1_38(case: dict[str, Any]) -> None:
    expression = case["expr"]
    for variant, expected in case.items():
        if variant == "expr":
            continue
        env, use = variant.split("/")
        answer = answer_line(
            {
                "expression": expression,
                "device": DEVICE,
                "use": use,
                "env": "stored" if env == "stored" else "new",
                "features": FEATURES[env],
            }
        )
        if "compileError" in expected:
            assert up_to_wording(answer["compileError"]) == up_to_wording(expected["compileError"])
            continue
        if expression in COST_RANGES:
            assert answer.pop("cost") in COST_RANGES[expression]
            assert expected.pop("cost") in COST_RANGES[expression]
        assert answer == expected, variant


@pytest.mark.parametrize("case", CORPUS, ids=[case["expr"][:60] for case in CORPUS])
def test_remembered_answers_are_the_same(case: dict[str, Any]) -> None:
    """The fast evaluator, behind its memory, says what the reference says."""
    for use, compile_ in (("selector", compile_selector), ("derived", compile_derived)):
        expected = case[f"stored/{use}"]
        if "compileError" in expected:
            continue
        program: Program = compile_(case["expr"])
        device = device_from_json(DEVICE)
        for _ in range(2):
            if "error" in expected:
                with pytest.raises(CelEvaluationError) as raised:
                    program.answer(device)
                assert raised.value.text == expected["error"]
                continue
            answer = program.answer(device)
            if isinstance(answer, AttributeValue):
                answer = attribute_to_json(answer)
            assert answer == expected["value"]


def test_the_variants_are_the_four_declarations() -> None:
    """Without consumable capacity a new expression cannot ask for shared devices."""
    expression = "device.allowMultipleAllocations"
    without = answer_line(
        {"expression": expression, "device": DEVICE, "use": "selector", "env": "new"}
    )
    assert "undefined field 'allowMultipleAllocations'" in without["compileError"]
    assert isinstance(compile_selector(expression, Origin.STORED), Selector)
    every_gate = FeatureGates(GATES)
    assert isinstance(compile_derived(expression, Origin.NEW, every_gate), DerivedAttribute)
