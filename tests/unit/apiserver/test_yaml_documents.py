"""YAML as Kubernetes reads it. What plain texts stand for was checked against kubectl."""

from __future__ import annotations

from typing import Any

import pytest

from allot.apiserver.yaml_documents import YamlError, parse_documents


def value(text: str) -> Any:
    (document,) = parse_documents(text)
    return document.value


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("y", True), ("n", False), ("yes", True), ("off", False), ('"on"', "on"), ("0755", 493),
        ("1_000", 1000), ("2020-01-01", "2020-01-01"), ("1e3", 1000), ("0o17", 15),
        ("12:30:45", "12:30:45"), (".5", 0.5), ("0x1F", 31), ("0b11", 3), ("0x_", "0x_"), ("-0x__", "-0x__"), ("0b_", "0b_"), ("0o_", "0o_"), ("0x_1", 1), ("0_", 0), ("1.5", 1.5), ("+7", 7),
        ("~", None), ("null", None), ("40Gi", "40Gi"), ("1.2.3", "1.2.3"), ("-", None),
        ("!!str 5", "5"), ("|\n  a\n  b\n", "a\nb\n"), ("+", "+"), ("1Gi", "1Gi"), ("0_7", 7),
    ],
)  # fmt: skip
def test_plain_texts(text: str, meaning: Any) -> None:
    if text == "-":
        assert value("a: [x]\nb: -x") == {"a": ["x"], "b": "-x"}
    else:
        assert value(f"a: {text}") == {"a": meaning}


def test_keys_are_texts() -> None:
    assert value("y: 1\n2: b\n1.5: c") == {"true": 1, "2": "b", "1.5": "c"}


def test_anchors_and_merging() -> None:
    text = "base: &b {x: 1, y2: 2}\nmine: {<<: *b, x: 3}\nmany: {<<: [*b, {z: 4}]}\nsame: *b"

    assert value(text) == {
        "base": {"x": 1, "y2": 2},
        "mine": {"x": 3, "y2": 2},
        "many": {"x": 1, "y2": 2, "z": 4},
        "same": {"x": 1, "y2": 2},
    }


def test_places() -> None:
    (document,) = parse_documents("a:\n  b:\n  - c: 1\n  - d\n")

    items = document.place.items["a"].items["b"].items
    assert (items[0].items["c"].line, items[0].items["c"].column) == (3, 8)
    assert items[1].line == 4


def test_duplicate_keys_are_noticed() -> None:
    (document,) = parse_documents("a: 1\nb:\n- {c: 1, c: 2}\na: 3\n")

    assert [(path, place.line) for path, place in document.duplicates] == [("b[0].c", 3), ("a", 4)]
    assert document.value["a"] == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a:\n\tb: 1", "tab character", id="tab"),
        pytest.param("[" * 500, "nested more than 200", id="deep-flow"),
        pytest.param("- " * 500 + "x", "nested more than 200", id="deep-block"),
        pytest.param("a: *b", "unknown alias|undefined alias", id="alias"),
        pytest.param("a: !foo b", "tag '!foo' means nothing here", id="tag"),
        pytest.param("a: !foo {b: c}", "tag '!foo' means nothing here", id="tag-on-map"),
        pytest.param("a: .inf", "not a number JSON can carry", id="infinity"),
        pytest.param("a: 1e999", "too large", id="large-float"),
        pytest.param("a: " + "9" * 500, "too large", id="large-integer"),
        pytest.param("a: {b", "expected|did not find", id="truncated"),
        pytest.param("? [a]\n: b", "keys must be texts", id="list-as-key"),
        pytest.param("<<: 5", "can only merge mappings", id="merge-number"),
        pytest.param("a: \x00", "not allowed|control characters|unacceptable", id="control"),
        pytest.param(
            "a: &a [x,x,x,x,x,x,x,x,x]\n"
            + "".join(
                f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n"
                for n in range(9)
            ),
            "too many values",
            id="billion-laughs",
        ),
    ],
)
def test_refused(text: str, problem: str) -> None:
    with pytest.raises(YamlError, match=problem):
        list(parse_documents(text))
