"""Rules: the table, the decision that explains it, and the code that asks for them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from allot import rules
from allot.features import DEFAULTS, GATES, KUBERNETES_DEFAULTS
from allot.rules import RULES, RuleSet

ROOT: Final = Path(__file__).parents[2]
DECISION: Final = (ROOT / "docs/decisions/0003-seeds-and-kubernetes.md").read_text(encoding="utf-8")
CONSTANTS: Final = {
    value: name for name, value in vars(rules).items() if isinstance(value, str) and value in RULES
}
WORDS: Final = {"Forbidden"}
"""What the table names that looks like a rule."""
TABLES: Final = {
    ROOT / "src/allot/rules.py",
    ROOT / "src/allot/validation/kubernetes_warnings.py",
}
_code_names: Final = re.compile(r"`([A-Z][A-Za-z0-9]+)`")


def documented() -> set[str]:
    """The rules that the last column of the decision names."""
    rows = [line for line in DECISION.splitlines() if line.startswith("| ")]
    last = (line.rstrip("| ").rpartition("|")[2] for line in rows)
    return {name for cell in last for name in _code_names.findall(cell)} - GATES.keys() - WORDS


def asked() -> set[str]:
    """The rules that decide something somewhere."""
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "src").rglob("*.py")
        if path not in TABLES
    )
    return {name for name, constant in CONSTANTS.items() if re.search(rf"\b{constant}\b", text)}


def test_every_row_names_a_rule_that_decides_something() -> None:
    assert documented() == asked()


def test_every_rule_has_a_row() -> None:
    assert RULES.keys() == documented()


def test_rules_and_gates_have_different_names() -> None:
    assert not RULES.keys() & GATES.keys()


def test_with_seeds_all_rules_hold_and_with_v1_38_none() -> None:
    assert all(name in DEFAULTS for name in RULES)
    assert not any(name in DEFAULTS.with_rules(RuleSet.V1_38) for name in RULES)
    assert not any(name in KUBERNETES_DEFAULTS for name in RULES)
