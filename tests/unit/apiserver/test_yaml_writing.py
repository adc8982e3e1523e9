"""YAML as Kubernetes writes it, and as YAML parsers read it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from allot.apiserver.yaml_documents import parse_documents
from allot.apiserver.yaml_writing import list_item, to_yaml


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"b": 1, "a": "x"}, "a: x\nb: 1\n"),
        ({"a": []}, "a: []\n"),
        ({"a": {}}, "a: {}\n"),
        ({"a": [1, {"b": 2, "c": [3]}, [4, 5]]}, "a:\n- 1\n- b: 2\n  c:\n  - 3\n- - 4\n  - 5\n"),
        ({"a": "l1\nl2\n"}, "a: |\n  l1\n  l2\n"),
        ({"a": "l1\nl2"}, "a: |-\n  l1\n  l2\n"),
        ({"a": "l1\n\n"}, "a: |+\n  l1\n\n"),
        ({"a": " l1\nl2"}, 'a: " l1\\nl2"\n'),
        ({"a": "true"}, 'a: "true"\n'),
        ({"y": "1.5"}, '"y": "1.5"\n'),
        ({"a": "a: b"}, "a: 'a: b'\n"),
        ({"a": "it's"}, "a: it's\n"),
        ({"a": "'"}, "a: ''''\n"),
        ({"a": ""}, 'a: ""\n'),
        ({"a": "\t"}, 'a: "\\t"\n'),
        ({"a": "x " * 100 + "y"}, "a: " + "x " * 100 + "y\n"),
        ({"k" * 121: {"a": 1}}, "? " + "k" * 121 + "\n:\n  a: 1\n"),
        ({"a": 1e300, "b": None, "c": True}, "a: 1.0e+300\nb: null\nc: true\n"),
    ],
)
def test_as_kubernetes_writes_it(value: Any, written: str) -> None:
    assert to_yaml(value).decode() == written


def test_an_item_of_a_list() -> None:
    assert list_item({"a": {"b": 1}, "c": "x"}) == b"- a:\n    b: 1\n  c: x\n"


TEXTS = st.one_of(
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=12),
    st.text(list("a0 \n\t:#-'\"\\{}[],&*!|>%@`?=~.+ex_/TZyn<\u2028\ufeff"), max_size=8),
)
VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**63), TEXTS, st.floats(-1e300, 1e300)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_it_reads_as_what_was_written(value: dict[str, Any]) -> None:
    text = to_yaml(value).decode()
    assert yaml.load(text, yaml.SafeLoader) == value
    assert [document.value for document in parse_documents(text)] == [value]
