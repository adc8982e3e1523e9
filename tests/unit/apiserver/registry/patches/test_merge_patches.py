"""Merge patches. The table is the appendix of RFC 7386, as far as the patch is an object."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw
from msgspec.json import encode

from allot.apiserver.registry.patches import PatchError, merge_patch


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({}, {"a": [None, {"b": None}]}, {"a": [None, {"b": None}]}),
        ({"a": 1}, {}, {"a": 1}),
    ],
)
def test_merging(document: Any, patch: Any, result: Any) -> None:
    before = json.dumps(document)

    assert merge_patch(document, json.dumps(patch).encode()) == result
    assert json.dumps(document) == before


@pytest.mark.parametrize("patch", [b"[]", b"null", b'"a"', b"1", b"{", b"", b'{"a":' * 500])
def test_not_a_merge_patch(patch: bytes) -> None:
    with pytest.raises(PatchError) as caught:
        merge_patch({"a": 1}, patch)

    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


def test_bytes_stay_unless_a_patch_changes_them() -> None:
    opaque = Raw(b'{ "b": 1 }')
    document = {"spec": {"parameters": opaque}}

    assert merge_patch(document, b'{"spec":{"x":1}}')["spec"]["parameters"] is opaque
    assert (
        merge_patch(document, b'{"spec":{"parameters":{"b":1,"c":null}}}')["spec"]["parameters"]
        is opaque
    )
    assert merge_patch(document, b'{"spec":{"parameters":{"b":true}}}') == {
        "spec": {"parameters": {"b": True}}
    }
    assert merge_patch(document, b'{"spec":{"parameters":null}}') == {"spec": {}}
    assert (
        encode(merge_patch(document, b'{"a":1.0}')) == b'{"spec":{"parameters":{ "b": 1 }},"a":1.0}'
    )


def test_bytes_that_are_not_json_cannot_be_patched() -> None:
    with pytest.raises(PatchError, match="the stored value cannot be patched") as caught:
        merge_patch({"a": Raw(b"{oops")}, b'{"a":{"b":1}}')

    assert caught.value.code == 422
