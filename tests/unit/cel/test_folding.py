"""Constant parts of an expression are evaluated once per program, and only when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from allot.api.quantity import Quantity
from allot.api.semver import Semver
from allot.cel import AttributeValue, CelDevice, Program, cel_device, compile_derived
from allot.cel import program as programs
from allot.cel.kubernetes import Origin
from allot.cel.library import formatting, network, regexes, urls
from allot.cel.plan import Once, is_small
from allot.cel.program import Use
from allot.cel.values import JoinedList
from allot.features import FeatureGates

INDEX: Final = 'device.attributes["gpu.example.com"].index'


def a_cel_device(index: int) -> CelDevice:
    return cel_device("gpu.example.com", "gpu", {"index": AttributeValue(int_=index)}, {})


def compiled(expression: str) -> Program:
    """A program of its own, which shares no constants with others."""
    return programs._compile(expression, Use.DERIVED, Origin.STORED, FeatureGates(()))


class Calls:
    """How often something was called."""

    def __init__(self, target: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        original: Callable[..., Any] = getattr(target, name)

        def counted(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            return original(*arguments, **named)

        monkeypatch.setattr(
            target, name, staticmethod(counted) if isinstance(target, type) else counted
        )


def ways(program: Program) -> Iterator[Callable[[CelDevice], object]]:
    yield program.answer
    yield program.evaluate
    yield program.evaluator.reference


PARSED: Final = [
    pytest.param(Quantity, "parse", "quantity('1.2345Gi').isInteger()", id="quantity"),
    pytest.param(Semver, "parse", "semver('9.8.7-folding').major() > 0", id="semver"),
    pytest.param(network, "_parse_address", "ip('10.9.8.7').isLoopback()", id="ip"),
    pytest.param(network, "_parse_address", "cidr('10.9.8.0/25').prefixLength() > 0", id="cidr"),
    pytest.param(
        network, "_parse_address", "cidr('10.9.0.0/16').containsIP('10.9.8.6')", id="ip-argument"
    ),
    pytest.param(network, "_parse_address", "isIP('10.9.8.5')", id="isIP"),
    pytest.param(urls, "_parse", "url('http://folding/x').getHost() != ''", id="url"),
    pytest.param(urls, "_parse", "isURL('http://folding/y')", id="isURL"),
    pytest.param(formatting, "parse_format", "'folded %s'.format([string(x)]) != ''", id="format"),
    pytest.param(regexes, "_RE2", "string(x).matches('^[0-9]+(folded)?$')", id="regex"),
]


@pytest.mark.parametrize(("target", "parser", "condition"), PARSED)
def test_texts_are_parsed_once(
    target: Any, parser: str, condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On many devices, in nested loops, by every evaluator."""
    calls = Calls(target, parser, monkeypatch)
    program = compiled(
        f"lists.range(20).all(x, lists.range(10).all(y, x + y + {INDEX} >= 0 && ({condition} || true)))"
    )
    for evaluate in ways(program):
        for index in range(5):
            evaluate(a_cel_device(index))

    # Once without and once with its cost; a URL as a request and as a reference.
    assert 1 <= calls.count <= 2


@pytest.mark.parametrize(
    "constant",
    [
        "lists.range(30).map(x, x * x).sum()",
        "cel.bind(l, [1, 2, 3].sort(), l.size())",
        "{'a': [1, 2], 'b': [3]}['a'].size()",
        "size('a,b,c'.split(',').map(x, x.upperAscii()).join('-'))",
        "optional.of(7).orValue(8)",
        "[1, 2].exists(x, x == 2) ? 5 : 6",
    ],
)
def test_constant_parts_cost_the_same_every_time(constant: str) -> None:
    program = compiled(f"[1, 2, 3].map(x, {constant} + x + {INDEX})")
    expected = [program.evaluator.reference(a_cel_device(index)) for index in range(3)]

    assert len({outcome.cost for outcome in expected}) == 1
    for index in range(3):
        assert program.evaluate(a_cel_device(index)).cost == expected[index].cost


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        pytest.param(f"{INDEX} >= 0 || 1 / 0 == 1", True, id="or"),
        pytest.param(f"{INDEX} < 0 && ip('x').isLoopback()", False, id="and"),
        pytest.param(f"{INDEX} >= 0 ? true : [1][5] == 1", True, id="conditional"),
        pytest.param(f"[{INDEX}].exists(x, x == 3 || {{}}.a == 1)", True, id="loop"),
        pytest.param(
            f"[?optional.of({INDEX})].size() == 1 || quantity('x').isInteger()", True, id="optional"
        ),
    ],
)
def test_constant_errors_matter_only_where_they_are_evaluated(expression: str, value: bool) -> None:
    program = compiled(expression)
    for _ in range(2):
        assert program.evaluate(a_cel_device(3)).value == AttributeValue(bool_=value)
        program._answers.clear()
        assert program.answer(a_cel_device(3)) == AttributeValue(bool_=value)


def test_constant_errors_are_the_same_every_time() -> None:
    program = compiled(f"[1, 2].map(x, {INDEX} + x + [1, 2][7])")

    outcomes = [program.evaluate(a_cel_device(index)) for index in range(3)]

    assert {outcome.error for outcome in outcomes} == {"index out of bounds: 7"}
    assert len({outcome.cost for outcome in outcomes}) == 1


def test_what_is_not_needed_is_not_evaluated() -> None:
    """Compiling and evaluating pass over a constant that would take long."""
    program = compiled(
        f"{INDEX} >= 0 || lists.range(999).all(x, lists.range(990).all(y, x != -y - 1))"
    )

    outcome = program.evaluate(a_cel_device(1))

    assert outcome.cost < 20


def test_the_limit_ends_inside_a_remembered_part() -> None:
    """The cost at which an evaluation is given up is that of the step, not of the whole part."""
    program = compiled(f"{INDEX} >= 0 && lists.range(90).all(x, x >= 0)")
    whole = program.evaluator.reference(a_cel_device(1))
    for limit in (5, 50, 150, whole.cost - 1, whole.cost):
        fresh = compiled(program.expression)
        assert program.evaluator.reference(a_cel_device(1), limit) == fresh.evaluator.reference(
            a_cel_device(1), limit
        )


def test_large_values_are_not_kept() -> None:
    assert is_small([1, "text", {"a": [b"x"]}])
    assert not is_small(list(range(10_000)))
    assert not is_small([["x" * 3_000] * 2])
    assert not is_small(JoinedList([1] * 3_000, [2] * 3_000))
    once = Once()
    once.remember(list(range(10_000)), 3)
    assert not once.is_known
    assert not once.is_value


def test_evaluations_do_not_change_what_is_shared() -> None:
    """Lists and maps that a loop collects begin afresh, also beside constants that look alike."""
    program = compiled(
        f"cel.bind(l, [1, 2], (l + [{INDEX}]).map(x, l + [x]).map(y, y.size()).sum() "
        f"+ {{'a': 1}}.transformMap(k, v, v + {INDEX}).size() + l.size() + [].size())"
    )

    answers = {program.evaluate(a_cel_device(3)).value for _ in range(3)}

    assert answers == {AttributeValue(int_=12)}


def test_an_expression_that_reads_nothing_is_evaluated_once_in_all() -> None:
    program = compile_derived("lists.range(50).all(x, lists.range(50).all(y, x + y >= 0)) // once")
    for index in range(100):
        program.answer(a_cel_device(index))

    assert program.evaluations == 1


def test_answers_remembered_are_bounded_and_never_forgotten_all_at_once() -> None:
    program = compiled(f"{INDEX} + 1")
    for index in range(programs._MEMO_SIZE + 1):
        program.answer(a_cel_device(index))
    assert programs._MEMO_SIZE // 2 <= len(program._answers) <= programs._MEMO_SIZE

    before = program.evaluations
    program.answer(a_cel_device(programs._MEMO_SIZE - 1))
    assert program.evaluations == before
