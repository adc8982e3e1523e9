"""JSONPath of printer columns."""

from __future__ import annotations

from typing import Any

import pytest

from allot.apiserver.printers.json_paths import MAX_RESULTS, JsonPathError, json_path

DATA: dict[str, Any] = {
    "spec": {
        "name": "n",
        "list": [{"a": "x", "b": 1}, {"a": "y", "b": 2, "c": True}],
        "labels": {"a.b/c": "dotted"},
        "numbers": [1, 2, 3],
    }
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.name", ["n"]),
        (".spec.missing", []),
        (".spec.list[*].a", ["x", "y"]),
        (".spec.list[0].a", ["x"]),
        (".spec.list[-1].a", ["y"]),
        (".spec.list[5].a", []),
        (".spec.numbers[-1:]", [3]),
        (".spec.numbers[0:2]", [1, 2]),
        (".spec.numbers[::2]", [1, 3]),
        ('.spec.list[?(@.a=="y")].b', [2]),
        (".spec.list[?(@.b>1)].a", ["y"]),
        (".spec.list[?(@.c==true)].a", ["y"]),
        (".spec.list[?(@.c)].a", ["y"]),
        (".spec.labels.a\\.b/c", ["dotted"]),
        (".spec.labels['a.b/c']", ["dotted"]),
        ("..b", [2, 1]),
        (".spec.numbers.*", [1, 2, 3]),
    ],
)
def test_values_are_found(path: str, found: list[Any]) -> None:
    assert json_path(path)(DATA) == found


@pytest.mark.parametrize(
    "path", ["spec", ".spec[", ".spec[?(a)]", ".spec[a]", ".a..", ".list[?(@.a==b)x]"]
)
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        json_path(path)


def test_results_are_bounded() -> None:
    wide = {"a": [{"b": [0] * 100}] * 100}

    assert len(json_path(".a[*].b[*]")(wide)) == MAX_RESULTS
