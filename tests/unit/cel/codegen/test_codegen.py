"""Generated code: nothing of an expression is ever written into it."""

from __future__ import annotations

import keyword
import re

import pytest

from allot.cel import compile_derived
from allot.cel.codegen import MAX_DEPTH, MAX_NODES, generate

HOSTILE = "__import__('os').system('true') # \" ' \\ \n"
EXPRESSIONS = [
    f"device.attributes[{HOSTILE!r}].x == {HOSTILE!r}",
    "device.attributes.`import os`.`os.system` == 'exec'",
    "[1, 2].map(program, program + 12345).exists(v, v == 67890)",
    "cel.bind(lambda_, {'os.system': 'x'}, lambda_.size() == 1 ? 'aa' : 'bb') == 'aa'",
    "{'k': [1]}.?k[?0].orValue(9) == 1 && 'x'.matches('^evil.*$') || 'y' in ['z']",
    "device.attributes['d'].transformMap(k, v, k + 'secret') == {}",
]
ALLOWED = re.compile(
    r"[bcdfgkmstv]\d*|program|type|str|int|bool|list|dict|isinstance|has_value|value|append"
    r"|is_value|is_counted|cost|remember"
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("counts", [False, True])
def test_source_holds_no_text_of_the_expression(expression: str, counts: bool) -> None:
    generated = generate(compile_derived(expression).evaluator._plan, counts=counts)
    if generated is None:
        assert counts, "only what is counted may be left to the reference"
        return
    source, constants = generated

    names = set(re.findall(r"[A-Za-z_]\w*", source))
    assert {n for n in names if not keyword.iskeyword(n) and not ALLOWED.fullmatch(n)} == set()
    assert not re.search(r"['\"#\\]", source)
    assert all(re.fullmatch(r"k\d+", name) for name in constants)
    # The only numbers written out are costs and weights.
    assert not {"12345", "67890"} & set(re.findall(r"\d+", source))


def test_deep_plans_are_left_to_the_reference() -> None:
    program = compile_derived("[" * (MAX_DEPTH + 5) + "]" * (MAX_DEPTH + 5) + " == []")

    assert generate(program.evaluator._plan, counts=False) is None


def test_large_plans_are_left_to_the_reference() -> None:
    """Python cannot be interrupted while it compiles."""
    program = compile_derived("device.driver != 'a'" + " && device.driver != 'a'" * MAX_NODES)

    assert generate(program.evaluator._plan, counts=False) is None


def test_wide_logic_has_no_nested_blocks() -> None:
    program = compile_derived("device.driver != 'a'" + " && device.driver != 'a'" * 50)
    generated = generate(program.evaluator._plan, counts=False)

    assert generated is not None
    assert max(len(line) - len(line.lstrip()) for line in generated[0].splitlines()) <= 12
