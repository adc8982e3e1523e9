"""Syntax errors of JSON, as Go words them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allot.api.json_syntax import syntax_problem

VALUE = "looking for beginning of value"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{", "unexpected end of JSON input"),
        ("", "unexpected end of JSON input"),
        ('"', "unexpected end of JSON input"),
        ('{"a":"b', "unexpected end of JSON input"),
        ('{"a":}', f"invalid character '}}' {VALUE}"),
        (" x", f"invalid character 'x' {VALUE}"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("{'a':1}", r"invalid character '\'' looking for beginning of object key string"),
        ("tru", "invalid character ' ' in literal true (expecting 'e')"),
        ('{"a":nul}', "invalid character '}' in literal null (expecting 'l')"),
        ('{"a":01}', "invalid character '1' after object key:value pair"),
        ('{"a":1}x', "invalid character 'x' after top-level value"),
        (r'{"a":"\q"}', "invalid character 'q' in string escape code"),
        (r'{"a":"\u12x4"}', r"invalid character 'x' in \u hexadecimal character escape"),
        ("[1 2]", "invalid character '2' after array element"),
        ('{"a":-}', "invalid character '}' in numeric literal"),
        ('{"a":1.}', "invalid character '}' after decimal point in numeric literal"),
        ('{"a":1e}', "invalid character '}' in exponent of numeric literal"),
        ('{"a":"\tx"}', r"invalid character '\t' in string literal"),
    ],
)
def test_problems(body: str, problem: str) -> None:
    assert syntax_problem(body.encode()) == problem


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_values)
def test_json_has_none(value: object) -> None:
    assert syntax_problem(json.dumps(value, indent=1).encode()) == ""
    assert syntax_problem(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")) == ""
