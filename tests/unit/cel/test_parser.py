"""Parsing: shapes, literals, positions of what is wrong, and limits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from allot.cel import CelCompileError, compile_derived
from allot.cel.kubernetes import Origin, environment
from allot.cel.parser import parse
from allot.cel.source import Source
from allot.cel.syntax import Call, Comprehension, Constant, Expression, Identifier, Select, depth
from allot.cel.values import Uint
from allot.features import FeatureGates

MACROS = environment(Origin.STORED, FeatureGates(())).macros


def parsed(text: str) -> Expression:
    return parse(Source(text), MACROS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("42", 42, id="int"),
        pytest.param("-0x1F", -31, id="negative-hex"),
        pytest.param("7u", Uint(7), id="uint"),
        pytest.param(".5e1", 5.0, id="double-without-whole"),
        pytest.param("null", None, id="null"),
        pytest.param(r"'\x41\u00e9\U0001F600\101'", "Aé😀A", id="escapes"),
        pytest.param(r"r'\d'", r"\d", id="raw"),
        pytest.param('"""a"b\nc"""', 'a"b\nc', id="triple-quoted"),
        pytest.param(r"b'\xff\377é'", b"\xff\xff\xc3\xa9", id="bytes"),
        pytest.param("bR'\\n'", b"\\n", id="raw-bytes"),
    ],
)
def test_literals(text: str, value: object) -> None:
    constant = parsed(text)

    assert isinstance(constant, Constant)
    assert (type(constant.value), constant.value) == (type(value), value)


def test_operators_bind_as_in_the_language() -> None:
    relation = parsed("a + b * c == d && !e")

    assert isinstance(relation, Call)
    assert relation.function == "_&&_"
    equality, negation = relation.arguments
    assert isinstance(equality, Call)
    assert equality.function == "_==_"
    assert isinstance(negation, Call)
    assert negation.function == "!_"


def test_even_numbers_of_signs_vanish() -> None:
    assert isinstance(parsed("!!a"), Identifier)
    assert isinstance(parsed("--a"), Identifier)
    assert isinstance(parsed("---a"), Call)


def test_back_quoted_fields_may_hold_what_names_may_not() -> None:
    field = parsed("a.`b-c/d.e`")

    assert isinstance(field, Select)
    assert field.field == "b-c/d.e"


def test_long_chains_stay_flat() -> None:
    assert depth(parsed("a" + " && a" * 1000)) < 20


def test_macros_become_loops() -> None:
    assert isinstance(parsed("a.all(x, x)"), Comprehension)
    assert isinstance(parsed("cel.bind(x, 1, x)"), Comprehension)
    assert isinstance(parsed("other.bind(x, 1, x)"), Call)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        pytest.param("", 1, -1, "Syntax error", id="nothing"),
        pytest.param("1 +\n+ 2", 2, 0, "Syntax error", id="second-line"),
        pytest.param("(1", 1, 2, "Syntax error", id="open-parenthesis"),
        pytest.param("[1, 2", 1, 5, "Syntax error", id="open-bracket"),
        pytest.param("a b", 1, 2, "Syntax error", id="two-expressions"),
        pytest.param("'é' + @", 1, 6, "Syntax error: token recognition", id="strange-character"),
        pytest.param("'abc", 1, 0, "Syntax error: token recognition", id="open-string"),
        pytest.param(
            "[1].all(x.y, true)", 1, 9, "argument must be a simple name", id="bad-variable"
        ),
        pytest.param("has(a)", 1, 4, "invalid argument to has() macro", id="bad-has"),
        pytest.param("for", 1, 0, "reserved identifier: for", id="reserved"),
        pytest.param("a |b", 1, 2, "Syntax error: token recognition error at: '|b'", id="bar"),
        pytest.param("99999999999999999999", 1, 0, "invalid int literal", id="int-overflow"),
        pytest.param("99999999999999999999u", 1, 0, "invalid uint literal", id="uint-overflow"),
        pytest.param(r"'\ud800'", 1, 0, "invalid unicode code point", id="surrogate"),
        pytest.param(r"b'\u0041'", 1, 0, "unable to unescape string", id="unicode-in-bytes"),
    ],
)
def test_findings_have_positions(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(CelCompileError) as raised:
        parsed(text)

    first = raised.value.issues[0]
    assert (first.line, first.column) == (line, column)
    assert first.message.startswith(message)


def test_findings_show_the_line_and_a_caret() -> None:
    with pytest.raises(CelCompileError) as raised:
        compile_derived("true &&\n  nope")

    assert raised.value.text == (
        "compilation failed: ERROR: <input>:2:3: undeclared reference to 'nope' "
        "(in container '')\n |   nope\n | ..^"
    )


def test_all_findings_that_do_not_stop_the_reading_are_told() -> None:
    with pytest.raises(CelCompileError) as raised:
        parsed("as + 9223372036854775808 + has(1)")

    assert len(raised.value.issues) == 3


def test_the_arguments_of_a_reserved_word_are_not_looked_at() -> None:
    with pytest.raises(CelCompileError) as raised:
        parsed("if(for, has(1)) + void")

    findings = [issue.message for issue in raised.value.issues]
    assert findings == ["reserved identifier: if", "reserved identifier: void"]


def test_reading_goes_on_after_the_character_that_ends_a_token_too_early() -> None:
    with pytest.raises(CelCompileError) as raised:
        parsed(r'"\xFh"')

    columns = [issue.column for issue in raised.value.issues]
    assert columns == [0, 5, 6]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        pytest.param(
            "nope{a: b}", "undeclared reference to 'nope' (in container '')", id="nothing"
        ),
        pytest.param("int{}", "'int' is not a message type", id="type"),
        pytest.param("device{}", "'kubernetes.DRADevice' is not a type", id="variable"),
    ],
)
def test_what_is_not_a_message_cannot_be_made(text: str, finding: str) -> None:
    with pytest.raises(CelCompileError) as raised:
        compile_derived(text)

    assert [issue.message for issue in raised.value.issues] == [finding]


RULE_TOO_DEEP = "<input>:-1:0: expression recursion limit exceeded: 250"
TREE_TOO_DEEP = "<input>:-1:0: max recursion depth exceeded"


@pytest.mark.parametrize(
    ("deep", "deepest", "finding"),
    [
        pytest.param(lambda n: "(" * n + "1" + ")" * n, 249, RULE_TOO_DEEP, id="parentheses"),
        pytest.param(lambda n: "[" * n + "]" * n, 250, RULE_TOO_DEEP, id="lists"),
        pytest.param(lambda n: "f(" * n + "1" + ")" * n, 249, RULE_TOO_DEEP, id="calls"),
        pytest.param(
            lambda n: "1 + (" * n + "1" + ")" * n, 124, RULE_TOO_DEEP, id="right-operands"
        ),
        pytest.param(lambda n: "a ? b : " * n + "c", 249, RULE_TOO_DEEP, id="conditionals"),
        pytest.param(lambda n: "1" + " + 1" * n, 250, TREE_TOO_DEEP, id="sums"),
        pytest.param(lambda n: "1" + " * 1 - 1" * n, 249, TREE_TOO_DEEP, id="products-in-sums"),
        pytest.param(lambda n: "a" + ".b" * n, 250, TREE_TOO_DEEP, id="fields"),
        pytest.param(lambda n: "a" + ".?b" * n, 250, TREE_TOO_DEEP, id="optional-fields"),
        pytest.param(lambda n: "a" + ".b()" * n, 250, TREE_TOO_DEEP, id="member-calls"),
        pytest.param(lambda n: "a" + "[0]" * n, 250, TREE_TOO_DEEP, id="indices"),
        pytest.param(lambda n: "a" + " == a" * n, 250, TREE_TOO_DEEP, id="relations"),
        pytest.param(lambda n: "(1 + 1" + ".a" * n + ").b", 248, TREE_TOO_DEEP, id="all-together"),
    ],
)
def test_nesting_is_limited(deep: Callable[[int], str], deepest: int, finding: str) -> None:
    parsed(deep(deepest))
    with pytest.raises(CelCompileError) as raised:
        parsed(deep(deepest + 1))
    assert finding in raised.value.text


@pytest.mark.parametrize(
    "flat",
    [
        pytest.param("true" + " && true" * 600, id="and"),
        pytest.param("true" + " || true" * 600, id="or"),
        pytest.param("!" * 600 + "true", id="not"),
        pytest.param("[" + "1 + 1, " * 600 + "]", id="elements"),
    ],
)
def test_what_does_not_nest_is_not_limited(flat: str) -> None:
    parsed(flat)
