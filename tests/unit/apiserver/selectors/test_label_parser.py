"""Label selectors: what matches, and what is said about those that cannot be read."""

from __future__ import annotations

import pytest

from allot.api.selectors import EVERYTHING
from allot.apiserver.selectors import (
    SelectorError,
    parse_label_selector,
)

OBJECTS = {
    "a": {"t": "x", "env": "p", "n": "5"},
    "b": {"t": "y", "n": "x"},
    "c": {"env": "q"},
    "d": {"t": "", "n": "-3"},
}


def matching(selector: str) -> str:
    parsed = parse_label_selector(selector)
    return "".join(name for name, labels in OBJECTS.items() if parsed.matches(labels))


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("", "abcd"), ("  \t\n", "abcd"),
        ("t=x", "a"), ("t==x", "a"), (" t = x ", "a"), ("t\t=\nx", "a"),
        ("t!=x", "bcd"), ("t=", "d"), ("t!=", "abc"), ("t=,env", ""),
        ("t in (x,y)", "ab"), ("t in(x,y)", "ab"), ("t in ( x , y )", "ab"),
        ("t in (,x)", "ad"), ("t in (x,)", "ad"), ("t in (,)", "d"), ("t in (x,,y)", "abd"),
        ("t notin (x)", "bcd"), ("t notin (x,y)", "cd"),
        ("env", "ac"), ("!env", "bd"), ("! env", "bd"), ("env,t=x", "a"), ("t=x,env=q", ""),
        ("n>4", "a"), ("n > 4", "a"), ("n<4", "d"), ("n>005", ""), ("n<9223372036854775807", "ad"),
        ("env=p,t=x,n=5", "a"), ("t!=x,t!=y", "cd"), ("in", ""), ("in in (in,notin)", ""), ("notin=in", ""),
        ("example.com/t!=1", "abcd"), ("!in,!notin", "abcd"),
    ],
)  # fmt: skip
def test_matching(selector: str, names: str) -> None:
    assert matching(selector) == names


def test_everything_and_nothing() -> None:
    assert parse_label_selector("") == EVERYTHING
    assert parse_label_selector("").is_everything
    assert not parse_label_selector("a").is_everything


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("b==1,a", "a,b=1"),
        ("x in (b,a,b)", "x in (a,b)"),
        ("! x ,y notin( 1 )", "!x,y notin (1)"),
        ("n > 1,n<5", "n>1,n<5"),
        ("a=", "a="),
        ("a in (,)", "a in (,)"),
    ],
)
def test_printing(text: str, printed: str) -> None:
    assert str(parse_label_selector(text)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a DoesNotExist", "unable to parse requirement: found 'DoesNotExist', expected: in, notin, =, ==, !=, gt, lt"),
        ("a!", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a=(b)", "unable to parse requirement: found '(', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a>b", "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("a>", "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("a>99999999999999999999", "unable to parse requirement: values[0]: Invalid value: \"99999999999999999999\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("a>1_0", "unable to parse requirement: values[0]: Invalid value: \"1_0\": for 'Gt', 'Lt' operators, the value must be an integer"),
    ],
)  # fmt: skip
def test_texts_that_are_no_selector(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("app:web", 'unable to parse requirement: <nil>: Invalid value: "app:web": name part must consist of'),
        ("-a=b", 'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of'),
        ("a/b/c", 'unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key'),
        ("A_b/c=d", 'unable to parse requirement: <nil>: Invalid value: "A_b/c": prefix part a lowercase RFC 1123'),
        ("x" * 64, 'unable to parse requirement: <nil>: Invalid value: "xxxx'),
        ("app={x}", 'unable to parse requirement: values[0][app]: Invalid value: "{x}": a valid label must be'),
        ("app in (a,b$)", 'unable to parse requirement: values[1][app]: Invalid value: "b$": a valid label'),
        ("app=" + "x" * 64, 'unable to parse requirement: values[0][app]: Invalid value: "xxxx'),
        ("n>-4", 'unable to parse requirement: values[0][n]: Invalid value: "-4": a valid label must be'),
        ("ä=b", "unable to parse requirement: <nil>: Invalid value:"),
    ],
)  # fmt: skip
def test_keys_and_values_are_checked(text: str, start: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)

    assert str(caught.value).startswith(start)


def test_selectors_have_a_limit() -> None:
    with pytest.raises(SelectorError, match="at most"):
        parse_label_selector("a," * 200_000)
