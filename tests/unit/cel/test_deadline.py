"""The deadline of an evaluation: asked every bounded amount of work, and obeyed wherever it strikes.

The deadlines here count how often they are asked. Their counts depend on the expression alone.
"""

from __future__ import annotations

from typing import Final

import pytest

from allot.cel import AttributeValue, CelEvaluationError, Program, cel_device, compile_derived
from allot.cel.steps import STRIDE
from allot.deadline import DeadlineExceededError

DEVICE: Final = cel_device(
    "gpu.example.com",
    "gpu-0",
    {"model": AttributeValue(string="A100"), "index": AttributeValue(int_=3)},
    {},
)


class CountingDeadline:
    """Is over at the n-th ask; never, if no n is given."""

    def __init__(self, ends_at: int = 0) -> None:
        self.asks = 0
        self._ends_at = ends_at

    def __call__(self) -> None:
        self.asks += 1
        if self.asks == self._ends_at:
            raise DeadlineExceededError


INDEX: Final = 'device.attributes["gpu.example.com"].index'
"""What keeps an expression from being constant."""


def doubled(start: str, times: int) -> str:
    """A list joined to itself many times over. That costs nothing."""
    return f"cel.bind(a, {start}, " + "cel.bind(a, a + a, " * times + "a" + ")" * (times + 1)


MANY: Final = f"lists.range(997 + {INDEX})"
TEXT: Final = f"{MANY}.map(i, 'abcdefghi').join('-').replace('-', string({INDEX}))"
LONG_TEXT: Final = " + ".join([TEXT] * 4)
DOUBLES: Final = "lists.range(300).map(x, double(x))"

LOOPS: Final = {
    "all": f"lists.range(100).all(x, lists.range(90).all(y, x + y + {INDEX} > 0))",
    "exists": f"lists.range(100).exists(x, lists.range(90).exists(y, x + y + {INDEX} < 0))",
    "exists_one": f"lists.range(9000).exists_one(x, x == {INDEX})",
    "map": f"lists.range(90).map(x, lists.range(90).map(y, x * y + {INDEX})).size() > 0",
    "filter": f"lists.range(90).filter(x, lists.range(90).filter(y, y > x + {INDEX}) != []) != []",
    "text": f"lists.range(8000).all(x, 'a' + string(x + {INDEX}) != 'b')",
    "format": f"lists.range(8000).all(x, '%s-%d'.format(['a', x + {INDEX}]) != '')",
    "matches": f"lists.range(8000).all(x, string(x + {INDEX}).matches('^[0-9]+$'))",
    "find": f"lists.range(8000).all(x, string(x + {INDEX}).find('[0-9]+') != '')",
    "semver": f"lists.range(8000).all(x, semver('1.2.' + string(x + {INDEX})).major() == 1)",
    "quantity": f"lists.range(8000).all(x, quantity(string(x + {INDEX})).isInteger())",
    "cidr": f"lists.range(250).all(x, lists.range(20).all(y, "
    f"cidr('10.0.0.0/8').containsIP('10.0.' + string(y) + '.' + string(x - {INDEX} + 3))))",
    "transformMap": f"{{'k': lists.range(8000).transformMap(i, v, v + {INDEX}).size()}}.k > 0",
    "transformList": f"lists.range(8000).transformList(i, v, i + v + {INDEX}) != []",
    "bind": "cel.bind(a, 1, cel.bind(b, a + 1, "
    f"lists.range(8000).all(x, cel.bind(c, a + b, c + x + {INDEX} > 0))))",
    "optional": f"lists.range(8000).all(x, {{'a': x}}.?a.orValue(0) + {INDEX} >= 0)",
    "optional list": f"lists.range(8000).all(x, [?optional.of(x + {INDEX})] != [])",
    "error": f"lists.range(8000).exists(x, x + {INDEX} < 0) || [1][{INDEX}] == 1",
}
"""Loops of some 8,000 turns, each of which costs at least 1."""

FUNCTIONS: Final = {
    "range": (f"300000 + {INDEX}", "lists.range(a) != []"),
    "sum": (MANY, "a.sum() > 0"),
    "max": (doubled(MANY, 7), "a.max() > 0"),
    "min": (doubled(f"{MANY}.map(x, string(x))", 7), "a.min() == ''"),
    "isSorted": (doubled(f"{MANY}.map(x, '')", 7), "a.isSorted()"),
    "indexOf": (doubled(MANY, 7), "a.indexOf(-1) == 0"),
    "lastIndexOf": (doubled(MANY, 7), "a.lastIndexOf(-1) == 0"),
    "includes": (doubled(MANY, 7), "a.includes(-1)"),
    "in": (doubled(f"{MANY}.map(x, double(x))", 7), "0.5 in a"),
    "equal": (doubled(f"{MANY}.map(x, double(x))", 4), "a == a"),
    "not equal": (doubled(f"{MANY}.map(x, [x])", 4), "a != a"),
    "equal maps": (f"{MANY}.transformMap(i, v, v)", "a == a"),
    "insert map": (f"{MANY}.transformMap(i, v, v)", "[1].transformMapEntry(i, v, a) != {}"),
    "sort": ("lists.range(500).map(x, duration(string(x) + 's'))", "a.sort() != []"),
    "sortBy": (MANY.replace("997", "497"), "a.sortBy(x, double(x)) != []"),
    "distinct": (DOUBLES, "a.distinct() != []"),
    "sets.contains": (DOUBLES, "sets.contains(a, a)"),
    "sets.equivalent": (DOUBLES, "sets.equivalent(a, a)"),
    "sets.intersects": (DOUBLES, "sets.intersects(a, [0.5])"),
    "flatten": (f"lists.range(900).map(x, [x + {INDEX}, x])", "a.flatten() != []"),
    "reverse": (doubled(MANY, 7), "a.reverse() != []"),
    "join": (doubled(f"{MANY}.map(x, 'a')", 7), "a.join() != ''"),
    "format list": (doubled(MANY, 4), "'%s'.format([a]) != ''"),
    "format map": (f"{MANY}.transformMap(i, v, v)", "'%s'.format([a]) != ''"),
    "format clauses": (MANY, f"'{'%d' * 400}'.format(a) != ''"),
    "split": (LONG_TEXT, "a.split('b') != []"),
    "characters": (LONG_TEXT, "a.split('') != []"),
    "replace": (LONG_TEXT, "a.replace('a', 'bc') != ''"),
    "interleave": (LONG_TEXT, "a.replace('', 'bcdef') != ''"),
    "findAll": (TEXT, "a.findAll('b').size() > 0"),
    "quote": (LONG_TEXT, "strings.quote(a) != ''"),
    "getQuery": (
        f"url('http://x/?' + {MANY}.map(i, string(i) + '=1').join('&'))",
        "a.getQuery() != {}",
    ),
    "getEscapedPath": (
        f"url('http://x/' + {MANY}.map(i, string(i)).join('é'))",
        "a.getEscapedPath() != ''",
    ),
    "unwrap": ("lists.range(900).map(x, optional.of(x))", "optional.unwrap(a) != []"),
    "unwrapOpt": ("lists.range(900).map(x, optional.of(x))", "a.unwrapOpt() != []"),
}
"""Functions that do much in one call: what they are called on, and the call."""

BOMBS: Final = {
    **LOOPS,
    **{
        name: f"[1].exists(i, {INDEX} == 3 && cel.bind(a, {about}, {call}))"
        for name, (about, call) in FUNCTIONS.items()
    },
    "attribute": f"{doubled(MANY, 4)}",
}


def outcome(program: Program, deadline: CountingDeadline) -> object:
    try:
        return program.answer(DEVICE, deadline)
    except CelEvaluationError as error:
        return error.text


def fresh(expression: str) -> Program:
    """A program that remembers nothing: neither answers nor constants."""
    # Programs are shared by their text; a comment makes it another text.
    fresh.made += 1  # type: ignore[attr-defined]
    return compile_derived(f"{expression} // {fresh.made}")  # type: ignore[attr-defined]


fresh.made = 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", LOOPS)
def test_loops_ask_by_turns_and_cost(name: str) -> None:
    """Generated code, counting code and the reference: none turns long without an ask."""
    program = fresh(LOOPS[name])
    deadlines = [CountingDeadline() for _ in range(3)]
    outcome(program, deadlines[0])
    cost = program.evaluate(DEVICE, deadline=deadlines[1]).cost
    program.evaluator.reference(DEVICE, deadline=deadlines[2])

    for deadline in deadlines:
        assert deadline.asks >= max(8_000, cost) / (2 * STRIDE)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_ask_within_one_call(name: str) -> None:
    about, call = FUNCTIONS[name]
    asks: list[int] = []
    for body in (call, "type(a) != bool"):
        deadline = CountingDeadline()
        reference = fresh(f"cel.bind(a, {about}, {body})").evaluator.reference(
            DEVICE, deadline=deadline
        )
        assert reference.error is None
        asks.append(deadline.asks)

    assert asks[0] >= asks[1] + 2  # to pay for the call may be one


@pytest.mark.parametrize("name", BOMBS)
def test_the_deadline_strikes_anywhere_and_leaves_no_trace(name: str) -> None:
    """Neither swallowed on the way, nor remembered as an answer; asked again, there is one."""
    undisturbed = CountingDeadline()
    expected = outcome(fresh(BOMBS[name]), undisturbed)
    program = fresh(BOMBS[name])

    for ends_at in sorted({1, 2, 3, undisturbed.asks // 2, undisturbed.asks - 1, undisturbed.asks}):
        if not 1 <= ends_at <= undisturbed.asks:
            continue
        deadline = CountingDeadline(ends_at)
        # What was remembered meanwhile may spare asks: then there is an answer, and the right one.
        try:
            assert outcome(program, deadline) == expected
        except DeadlineExceededError:
            assert deadline.asks == ends_at
        program._answers.clear()
    assert outcome(program, CountingDeadline()) == expected


@pytest.mark.parametrize("name", BOMBS)
def test_evaluate_and_the_reference_obey_too(name: str) -> None:
    program = fresh(BOMBS[name] if name != "attribute" else f"{BOMBS[name]} == []")

    with pytest.raises(DeadlineExceededError):
        program.evaluator.reference(DEVICE, deadline=CountingDeadline(2))
    with pytest.raises(DeadlineExceededError):
        program.evaluate(DEVICE, deadline=CountingDeadline(1))
    assert program.evaluations == 0


def test_an_expiry_is_no_answer() -> None:
    program = fresh(f"lists.range(9000).all(x, x + {INDEX} >= 0)")
    with pytest.raises(DeadlineExceededError):
        program.answer(DEVICE, CountingDeadline(3))

    assert program.evaluations == 0
    assert program.answer(DEVICE) == AttributeValue(bool_=True)
    assert program.evaluations == 1


@pytest.mark.parametrize(
    "call", ["a.sort() == a", "sets.contains(a, a)", "a.distinct() == a", "-1 in a"]
)
def test_what_cannot_be_paid_is_not_begun(call: str) -> None:
    """A call whose price alone is beyond the limit is not made: no ask within it."""
    for way in ("answer", "reference"):
        deadline = CountingDeadline()
        program = fresh(f"cel.bind(a, {doubled('lists.range(900)', 11)}, {call})")
        if way == "answer":
            text = outcome(program, deadline)
        else:
            text = program.evaluator.reference(DEVICE, deadline=deadline).error

        assert text == "operation cancelled: actual cost limit exceeded"
        assert deadline.asks <= 10
