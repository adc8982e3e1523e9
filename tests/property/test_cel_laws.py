"""Laws of CEL: the evaluators agree, and nothing but a CEL error ever comes out."""

from __future__ import annotations

import string
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from allot.api.quantity import Quantity
from allot.cel import (
    COST_LIMIT,
    AttributeValue,
    CelDevice,
    CelError,
    CelEvaluationError,
    Origin,
    Program,
    cel_device,
    compile_derived,
    compile_selector,
    planner,
)
from allot.cel import program as programs
from allot.cel.program import Use
from allot.cel.values import Value, elements, is_list
from allot.features import FeatureGates


class Amount:
    def __init__(self, text: str) -> None:
        self.value = Quantity.parse(text)


DEVICE: Final = cel_device(
    "gpu.example.com",
    "gpu-0",
    {
        "model": AttributeValue(string="A100"),
        "numa": AttributeValue(int_=1),
        "ecc": AttributeValue(bool_=True),
        "driverVersion": AttributeValue(version="550.54.15"),
        "lanes": AttributeValue(ints=(1, 2, 3)),
        "links": AttributeValue(strings=("a", "b")),
        "vendor.com/topology": AttributeValue(string="rack1-node3"),
    },
    {"memory": Amount("80Gi"), "vendor.com/bandwidth": Amount("2Ti")},
)

ATTRIBUTE: Final = st.sampled_from(
    [
        f'device.attributes["{domain}"].{name}'
        for domain, name in (
            ("gpu.example.com", "model"),
            ("gpu.example.com", "numa"),
            ("gpu.example.com", "ecc"),
            ("gpu.example.com", "driverVersion"),
            ("gpu.example.com", "lanes"),
            ("gpu.example.com", "links"),
            ("vendor.com", "topology"),
            ("gpu.example.com", "missing"),
            ("nodomain", "missing"),
        )
    ]
)
TEXT: Final = st.text(alphabet="abcA1- é", max_size=4).map(lambda text: f'"{text}"')
NUMBER: Final = st.integers(-3, 9).map(str) | st.sampled_from(
    ["9223372036854775807", "-9223372036854775808"]
)
TRUTH: Final = st.sampled_from(["true", "false"])


def filled(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda values: template.format(*values))


def booleans(depth: int) -> st.SearchStrategy[str]:
    leaves = TRUTH | filled("has({})", ATTRIBUTE) | ATTRIBUTE
    leaves |= st.sampled_from(
        ['"vendor.com" in device.attributes', 'has(device.capacity["vendor.com"].bandwidth)']
    )
    if depth == 0:
        return leaves
    inner, numbers, texts, lists = (
        make(depth - 1) for make in (booleans, integers, strings, int_lists)
    )
    return st.one_of(
        leaves,
        filled("({} && {})", inner, inner),
        filled("({} || {} || {})", inner, inner, inner),
        filled("!{}", inner),
        filled("({} ? {} : {})", inner, inner, inner),
        filled("({} == {})", numbers, numbers | ATTRIBUTE),
        filled("({} != {})", ATTRIBUTE, ATTRIBUTE | numbers | texts),
        filled("({} <= {})", numbers, numbers),
        filled("({} < {})", texts, texts),
        filled("({} in {})", numbers, lists),
        filled("({} in [1, 2])", ATTRIBUTE),
        filled("{}.startsWith({})", texts, texts),
        filled("{}.matches({})", texts, st.sampled_from(['"^[a-z]+"', '"(a|b)*$"', '"\\\\d"'])),
        filled("{}.all(x, x >= {})", lists, numbers),
        filled("{}.exists(x, 6 / x == {})", lists, numbers),
        filled("{}.exists_one(i, v, v == i + {})", lists, numbers),
        filled("cel.bind(b, {}, b || {})", inner, inner),
        filled("{}.?x.orValue({})", st.just("{'x': true}"), inner),
        filled("optional.of({}).hasValue()", ATTRIBUTE),
        filled(
            'device.capacity["gpu.example.com"].memory.isLessThan(quantity({}))',
            st.sampled_from(['"1Gi"', '"81Gi"', '"x"']),
        ),
    )


def integers(depth: int) -> st.SearchStrategy[str]:
    if depth == 0:
        return NUMBER
    inner, truths, texts, lists = (
        make(depth - 1) for make in (integers, booleans, strings, int_lists)
    )
    return st.one_of(
        NUMBER,
        filled("({} + {})", inner, inner),
        filled("({} * {})", inner, inner),
        filled("({} - {})", inner, inner),
        filled("({} / {})", inner, inner),
        filled("({} % {})", inner, inner),
        filled("({} ? {} : {})", truths, inner, inner),
        filled("int({})", ATTRIBUTE),
        filled("size({})", texts),
        filled("{}.size()", lists),
        filled("{}[{}]", lists, inner),
        filled("{}[?{}].orValue({})", lists, inner, inner),
        filled("{}.indexOf({})", texts, texts),
        filled("{}.sum()", lists),
        filled("cel.bind(n, {}, n + n)", inner),
        filled("{}.max()", lists),
    )


def strings(depth: int) -> st.SearchStrategy[str]:
    leaves = TEXT | st.sampled_from(["device.driver", "device.name"])
    if depth == 0:
        return leaves
    inner, truths, numbers = (make(depth - 1) for make in (strings, booleans, integers))
    return st.one_of(
        leaves,
        filled("({} + {})", inner, inner),
        filled("({} ? {} : {})", truths, inner, inner),
        filled("string({})", numbers),
        filled("{}.upperAscii()", inner),
        filled("{}.replace({}, {})", inner, inner, inner),
        filled("{}.substring({})", inner, numbers),
        filled('{}.split("-")[{}]', inner, numbers),
        filled('"%s-%d".format([{}, {}])', inner, numbers),
        filled("{}.find({})", inner, st.sampled_from(['"[a-z]+"', '"-?"'])),
    )


def int_lists(depth: int) -> st.SearchStrategy[str]:
    literal = st.lists(NUMBER, max_size=3).map(lambda items: f"[{', '.join(items)}]")
    if depth == 0:
        return literal
    inner, numbers = int_lists(depth - 1), integers(depth - 1)
    return st.one_of(
        literal,
        filled("[{}, {}]", numbers, numbers),
        filled("[?optional.none(), {}]", numbers),
        filled("({} + {})", inner, inner),
        filled("{}.map(x, x * {})", inner, numbers),
        filled("{}.filter(x, x > {})", inner, numbers),
        filled("{}.transformList(i, v, v % 2 == 0, v - i)", inner),
        filled("{}.sort()", inner),
        filled("{}.distinct()", inner),
        filled("lists.range({})", numbers),
        filled("{}.sortBy(x, -x)", inner),
    )


def outcome(program: Program, device: CelDevice) -> object:
    """What the scheduler sees: a value, or the text of an error."""
    try:
        return program.answer(device)
    except CelEvaluationError as error:
        return error.text


def check_agreement(program: Program) -> None:
    evaluator = program.evaluator
    reference = evaluator.reference(DEVICE)
    counted = evaluator.evaluate(DEVICE)
    try:
        value, error = evaluator.value(DEVICE), None
    except CelEvaluationError as raised:
        value, error = None, raised.text

    assert (shown(counted.value), *counted[1:]) == (shown(reference.value), *reference[1:])
    assert (shown(value), error) == (shown(reference.value), reference.error)
    whole = program.evaluate(DEVICE)
    assert outcome(program, DEVICE) == (whole.value if whole.error is None else whole.error)


def shown(value: Value) -> str:
    """A value as text that tells its type: 1, 1.0 and True are equal to Python."""
    if is_list(value):
        return str([shown(element) for element in elements(value)])  # type: ignore[arg-type]
    return repr(value)


@settings(max_examples=400, deadline=None)
@given(booleans(3))
def test_evaluators_agree_on_selectors(expression: str) -> None:
    """Value, error and cost: the two fast ways and the reference come to the same."""
    try:
        program = compile_selector(expression)
    except CelError:
        return
    check_agreement(program)


@settings(max_examples=300, deadline=None)
@given(integers(3) | strings(3) | int_lists(3))
def test_evaluators_agree_on_derived_attributes(expression: str) -> None:
    try:
        program = compile_derived(expression)
    except CelError:
        return
    check_agreement(program)


CONSTANT: Final = st.sampled_from(
    [
        "cidr('10.0.0.0/8').containsIP('10.1.1.1')",
        "cidr('10.0.0.0/33').prefixLength() == 8",
        "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
        "semver('1.2.x').major() == 1",
        "'%s-%d'.format(['a', 1]) == 'a-1'",
        "lists.range(9).all(c, lists.range(9).exists(e, c == e))",
        "[1, 2].map(c, 2 / (c - 1)).size() == 2",
        "cel.bind(c, [1, 2], c + c == c)",
        "[3, 1, 2].sort()[1] == 2 && {'a': 1}.?b.orValue(2) == 2",
        "has({'a': 1}.b) || [1][0] == 1",
        "(1 / 0 == 1 ? true : false)",
    ]
)


def with_constants(depth: int) -> st.SearchStrategy[str]:
    """Constants in every position: under loops, conditions, bindings and beside the device."""
    if depth == 0:
        return CONSTANT | booleans(1)
    inner = with_constants(depth - 1)
    return st.one_of(
        CONSTANT,
        filled("({} && {})", inner, inner),
        filled("({} || {})", inner, inner),
        filled("({} ? {} : {})", inner, inner, inner),
        filled("[1, 2, 0].all(x, {} || x > 0)", inner),
        filled("lists.range(3).exists(x, {} && x == {})", inner, integers(1)),
        filled("[{}, {}].filter(x, x).size() == 1", inner, inner),
        filled("[{}].map(x, [1].all(y, x)).size() > 0", inner),
        filled("cel.bind(b, {}, {} || b)", inner, inner),
        filled("cel.bind(b, {}, cel.bind(c, b && true, [1, 2].all(x, c || {})))", inner, inner),
        filled("{{'a': {}}}.a", inner),
        filled("[{}][?0].orValue({})", inner, inner),
        filled("dyn({}) == {}", inner, inner),
    )


def unfolded(expression: str) -> Program:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "fold_constants", lambda root: root)
        return programs._compile(expression, Use.SELECTOR, Origin.STORED, FeatureGates(()))


@settings(max_examples=400, deadline=None)
@given(with_constants(3), st.sampled_from([COST_LIMIT, 10, 60, 300]))
def test_folding_changes_neither_value_nor_error_nor_cost(expression: str, limit: int) -> None:
    """Whichever evaluator comes first, and whatever is remembered then."""
    try:
        plain = unfolded(expression)
    except CelError:
        return
    expected = plain.evaluator.reference(DEVICE, limit)
    folded = programs._compile(expression, Use.SELECTOR, Origin.STORED, FeatureGates(()))

    for _ in range(2):
        assert folded.evaluator.evaluate(DEVICE, limit) == expected
        assert folded.evaluator.reference(DEVICE, limit) == expected
    if limit == COST_LIMIT:
        assert outcome(folded, DEVICE) == outcome(plain, DEVICE)


@settings(max_examples=200, deadline=None)
@given(booleans(2))
def test_most_generated_expressions_compile_everywhere(expression: str) -> None:
    """What compiles for a new object compiles for a stored one, whatever the gates."""
    for gates in (FeatureGates(()), FeatureGates(("DRAListTypeAttributes",))):
        try:
            compile_selector(expression, Origin.NEW, gates)
        except CelError:
            continue
        compile_selector(expression, Origin.STORED)


FRAGMENTS: Final = (
    *"()[]{}.,?:+-*/%!<>=&|'\"`\\ \n\t#@$é\0",
    *("==", "&&", "||", "in", "true", "null", "device", ".attributes", "has(", "[?", ".?", "'''"),
    *("1", "2u", "0x", "1e9", "b'", "r'", "\\u12", ".map(x, ", ".all(", "cel.bind(", "dyn("),
    *("optional.of(", "//", "x", "int(", "timestamp(", "duration('1d')", ".format([", "%s", "{1:"),
)


@settings(max_examples=1500, deadline=None)
@given(
    st.text(max_size=40)
    | st.text(alphabet=string.printable, max_size=40)
    | st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)
)
@example("\ud800")
@example("'\\ud800'")
@example("b'\\u00e9'")
@example("timestamp('0000-01-01T00:00:00Z') == timestamp('9999-12-31T23:59:59.999999999Z')")
def test_random_text_raises_nothing_but_cel_errors(text: str) -> None:
    for compile_ in (compile_selector, compile_derived):
        try:
            program: Program = compile_(text)
        except CelError:
            continue
        assert program.evaluate(DEVICE).cost >= 0
        outcome(program, DEVICE)


HUGE: Final = (
    "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))",
    "[1, 2].all(a, " * 90 + "true" + ")" * 90,
    "lists.range(1000000).map(x, x)",
    "lists.range(700).map(x, 'a').sort() == []",
    "[" * 249 + "]" * 249 + " == []",
    "(" * 240 + "1" + ")" * 240 + " == 1",
    "true" + " && true" * 1200,
    "!" * 5000 + "true",
    "cel.bind(a, [1], " + "cel.bind(a, [a, a], " * 90 + "a == a" + ")" * 91,
    "cel.bind(a, lists.range(9), " + "cel.bind(a, a + a, " * 90 + "a.size() == 1" + ")" * 91,
    "cel.bind(a, 'aaaaaaaaa', " + "cel.bind(a, a.replace('', a), " * 9 + "a == ''" + ")" * 10,
    "'%s'.format([lists.range(90000).map(x, 'abc')]) == ''",
    "lists.range(30000).map(x, 'aaaaaaaaaaaaaaaaaaaa').join().matches('(a*)*(a|aa)+b')",
    "'a'.matches('((((((a{1,100}){1,100}){1,100}){1,100})))')",
    "device.driver.matches('(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)[0-9]{50}')",
)


@pytest.mark.parametrize("expression", HUGE, ids=[expression[:30] for expression in HUGE])
def test_pathological_expressions_end_by_the_cost_limit(expression: str) -> None:
    """They are answered, refused or given up; none runs away. `bench/cel` measures how fast."""
    try:
        program = compile_derived(expression)
    except CelError:
        return
    result = program.evaluate(DEVICE)
    assert result.error is not None or result.cost <= COST_LIMIT
