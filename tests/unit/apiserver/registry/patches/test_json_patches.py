"""JSON patches. The first table is the appendix of RFC 6902."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw
from msgspec.json import encode

from allot.api.decoding import DecodeError
from allot.api.json_limits import MAX_DEPTH
from allot.apiserver.registry.patches import PatchError, decode_document, json_patch, json_patches
from allot.apiserver.registry.patches.json_patches import MAX_COPIED_BYTES, MAX_OPERATIONS


def patched(document: Any, *operations: Any) -> Any:
    return json_patch(document, json.dumps(operations).encode())


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def remove(path: str) -> dict[str, Any]:
    return {"op": "remove", "path": path}


def check(path: str, value: Any) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}


def move(source: str, path: str) -> dict[str, Any]:
    return {"op": "move", "from": source, "path": path}


def copy(source: str, path: str) -> dict[str, Any]:
    return {"op": "copy", "from": source, "path": path}


@pytest.mark.parametrize(
    ("document", "operations", "result"),
    [
        pytest.param({"foo": "bar"}, [add("/baz", "qux")], {"baz": "qux", "foo": "bar"}, id="A.1"),
        pytest.param(
            {"foo": ["bar", "baz"]},
            [add("/foo/1", "qux")],
            {"foo": ["bar", "qux", "baz"]},
            id="A.2",
        ),
        pytest.param({"baz": "qux", "foo": "bar"}, [remove("/baz")], {"foo": "bar"}, id="A.3"),
        pytest.param(
            {"foo": ["bar", "qux", "baz"]}, [remove("/foo/1")], {"foo": ["bar", "baz"]}, id="A.4"
        ),
        pytest.param(
            {"baz": "qux", "foo": "bar"},
            [replace("/baz", "boo")],
            {"baz": "boo", "foo": "bar"},
            id="A.5",
        ),
        pytest.param(
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            [move("/foo/waldo", "/qux/thud")],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
            id="A.6",
        ),
        pytest.param(
            {"foo": ["all", "grass", "cows", "eat"]},
            [move("/foo/1", "/foo/3")],
            {"foo": ["all", "cows", "eat", "grass"]},
            id="A.7",
        ),
        pytest.param(
            {"baz": "qux", "foo": ["a", 2, "c"]},
            [check("/baz", "qux"), check("/foo/1", 2)],
            {"baz": "qux", "foo": ["a", 2, "c"]},
            id="A.8",
        ),
        pytest.param(
            {"foo": "bar"},
            [add("/child", {"grandchild": {}})],
            {"foo": "bar", "child": {"grandchild": {}}},
            id="A.10",
        ),
        pytest.param(
            {"foo": "bar"},
            [{**add("/baz", "qux"), "xyz": 123}],
            {"foo": "bar", "baz": "qux"},
            id="A.11",
        ),
        pytest.param({"/": 9, "~1": 10}, [check("/~01", 10)], {"/": 9, "~1": 10}, id="A.14"),
        pytest.param(
            {"foo": ["bar"]},
            [add("/foo/-", ["abc", "def"])],
            {"foo": ["bar", ["abc", "def"]]},
            id="A.16",
        ),
        pytest.param({"a": 1}, [replace("", {"b": 2})], {"b": 2}, id="whole-document"),
        pytest.param({"a": 1}, [add("b/c", 2)], {"a": 1, "c": 2}, id="before-the-slash"),
        pytest.param({"a": 1}, [add("/~2", 2)], {"a": 1, "~2": 2}, id="escapes-nothing"),
        pytest.param({"a": 1}, [copy("/b", "/c")], {"a": 1, "c": None}, id="copy-missing"),
        pytest.param({"l": [1, 2]}, [add("/l/-1", 3)], {"l": [1, 2, 3]}, id="add-at-the-end"),
        pytest.param({"l": [1, 2]}, [add("/l/-3", 3)], {"l": [3, 1, 2]}, id="add-from-the-end"),
        pytest.param({"l": [1, 2]}, [replace("/l/-1", 3)], {"l": [1, 3]}, id="replace-the-last"),
        pytest.param({"l": [1, 2]}, [remove("/l/+1")], {"l": [1]}, id="signed-place"),
        pytest.param({"l": [1, 2]}, [remove("/l/01")], {"l": [1]}, id="leading-zero"),
        pytest.param({"": {"": 1}}, [replace("//", 2)], {"": {"": 2}}, id="empty-names"),
        pytest.param({"a": [1]}, [add("/a/1", 2)], {"a": [1, 2]}, id="add-at-end"),
        pytest.param({"a": 1}, [add("/a", None)], {"a": None}, id="null-is-a-value"),
        pytest.param({"a": {}}, [move("/a", "/a")], {"a": {}}, id="move-nowhere"),
        pytest.param(
            {"a": {"x": 1}},
            [copy("/a", "/b"), replace("/b/x", 2)],
            {"a": {"x": 1}, "b": {"x": 2}},
            id="copies-are-apart",
        ),
        pytest.param(
            {"a": {"c": 1}},
            [copy("/a", "/a/b")],
            {"a": {"c": 1, "b": {"c": 1}}},
            id="copy-into-itself",
        ),
        pytest.param({"a": 1.0}, [check("/a", 1)], {"a": 1.0}, id="numbers-are-equal"),
        pytest.param({}, [check("/a", None)], {}, id="missing-counts-as-null"),
        pytest.param({}, [replace("/a", 1)], {"a": 1}, id="replaces-what-is-not-there"),
        pytest.param({}, [{"op": "add", "path": "/a"}], {"a": None}, id="no-value-is-null"),
        pytest.param({"01": 1, "-": 2}, [remove("/01"), remove("/-")], {}, id="names-like-indexes"),
    ],
)
def test_operations(document: Any, operations: list[Any], result: Any) -> None:
    before = json.dumps(document)

    assert patched(document, *operations) == result
    assert json.dumps(document) == before


@pytest.mark.parametrize(
    ("operations", "why"),
    [
        pytest.param([check("/s", "bar")], "test /s): the value is another one", id="A.9"),
        pytest.param([add("/none/bat", "qux")], 'there is no field "none"', id="A.12"),
        pytest.param([check("/s", 10)], "another one", id="A.15"),
        pytest.param([check("/n", True)], "another one", id="one-is-not-true"),
        pytest.param([check("/none/x", None)], 'no field "none"', id="null-deep-in-nothing"),
        pytest.param([check("/l/9", None)], "no item 9", id="null-in-no-item"),
        pytest.param([remove("/none")], "operation 0 (remove /none): there is no field", id="remove"),
        pytest.param([remove("")], "must have a slash", id="remove-all"),
        pytest.param([add("", {"b": 2})], "must have a slash", id="add-all"),
        pytest.param([copy("", "/x")], "must have a slash", id="copy-all"),
        pytest.param([replace("/l/2", 1)], "no item 2", id="replace-item"),
        pytest.param([add("/l/3", 1)], "no item 3", id="add-far-behind"),
        pytest.param([add("/l/-9", 1)], "no item -9", id="negative"),
        pytest.param([add("/l/²", 1)], "not an index", id="superscript"),
        pytest.param([add("/l/" + "9" * 5000, 1)], "not an index", id="many-digits"),
        pytest.param([remove("/l/-")], "not an index", id="remove-end"),
        pytest.param([add("/s/x", 1)], "no object or list", id="into-text"),
        pytest.param([move("/none", "/x")], 'no field "none"', id="move-missing"),
        pytest.param([move("/o", "/o/x")], "into itself", id="move-inside"),
        pytest.param([{"op": "eat", "path": "/a"}], "must be one of", id="unknown"),
        pytest.param([{"path": "/a"}], "must be one of", id="no-op"),
        pytest.param([{"op": "remove"}], "`path` must be a string", id="no-path"),
        pytest.param([{"op": "move", "path": "/a"}], "`from` must be a string", id="no-from"),
        pytest.param([remove("s")], "must have a slash", id="no-slash"),
        pytest.param([remove("/~2")], 'no field "~2"', id="escapes-nothing"),
        pytest.param([add("/x" * 300, 1)], "too deeply", id="deep-path"),
        pytest.param([check("/s", "s"), remove("/none")], "operation 1", id="second-fails"),
    ],
)  # fmt: skip
def test_operations_that_do_not_fit(operations: list[Any], why: str) -> None:
    document = {"s": "s", "n": 1, "l": [1, 2], "o": {}}

    with pytest.raises(PatchError) as caught:
        patched(document, *operations)

    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert why in caught.value.message
    assert caught.value.message.startswith("the server rejected our request")
    assert document == {"s": "s", "n": 1, "l": [1, 2], "o": {}}


@pytest.mark.parametrize(
    "patch",
    [b"", b"{not json", b'{"op":"x"}', b"3", b'[{"op":1}]', b'["add"]', b"[[]]", b"\xff", b"[" * 100_000,
     b"1" * 5000, b'[{"op":"add","path":"/a","value":' + b"[" * 500 + b"]" * 500 + b"}]"],
)  # fmt: skip
def test_not_a_patch(patch: bytes) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch({}, patch)

    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


def test_too_many_operations() -> None:
    enough = [check("/a", 1)] * MAX_OPERATIONS
    assert patched({"a": 1}, *enough) == {"a": 1}

    with pytest.raises(
        PatchError, match="allowed maximum operations in a JSON patch is 10000"
    ) as caught:
        patched({"a": 1}, *enough, check("/a", 1))

    assert (caught.value.code, caught.value.reason) == (413, "RequestEntityTooLarge")


def test_copies_cannot_grow_without_bound() -> None:
    doubling = [copy("/a", f"/a/{index}") for index in range(64)]
    with pytest.raises(PatchError, match="exceeding the limit"):
        patched({"a": {"text": "x" * 1000}}, *doubling)

    overwriting = [copy("/a", "/b")] * 100
    with pytest.raises(PatchError, match="exceeding the limit"):
        patched({"a": "x" * (MAX_COPIED_BYTES // 50)}, *overwriting)


def test_nesting_cannot_grow_without_bound() -> None:
    half = MAX_DEPTH // 2
    to_half = [add("/a" * length, {}) for length in range(1, half)]
    assert patched({}, *to_half, copy("/a", "/b"), move("/a", "/b" + "/a" * (half - 2) + "/b"))

    with pytest.raises(PatchError, match="too deeply"):
        patched(
            {},
            *to_half,
            copy("/a", "/a" * (half - 1) + "/b"),
            move("/a", "/b"),
            copy("/b", "/b/a/c"),
            copy("/b", "/b/a/c/a/c"),
        )


def test_bytes_stay_unless_a_patch_reaches_into_them() -> None:
    opaque = Raw(b'{ "b": 1, "a": "\\u003c" }')
    document = {"spec": {"parameters": opaque}, "labels": {}}

    untouched = patched(document, add("/labels/x", "y"), move("/spec", "/moved"))
    assert untouched["moved"]["parameters"] is opaque
    assert b'{ "b": 1, "a": "\\u003c" }' in encode(untouched)

    tested = patched(document, check("/spec/parameters", {"a": "<", "b": 1}))
    assert tested["spec"]["parameters"] is opaque
    assert patched(document, check("/spec/parameters/b", 1)) == document

    touched = patched(document, replace("/spec/parameters/b", 2))
    assert touched["spec"]["parameters"] == {"a": "<", "b": 2}
    assert document["spec"]["parameters"] is opaque

    copied = patched(document, copy("/spec/parameters", "/again"))
    assert copied["again"] is opaque


def test_large_values_are_measured_and_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(name: str) -> None:
        function = getattr(json_patches, name)

        def call(*arguments: Any) -> Any:
            calls.append(name)
            return function(*arguments)

        monkeypatch.setattr(json_patches, name, call)

    counted("depth")
    counted("plain")
    document = {"a": Raw(b'{"b": 1}'), "c": {}}

    patched(document, *[check("/a/b", 1), check("/a", {"b": 1})] * 100)
    patched(document, *[move("/c", "/d"), move("/d", "/c")] * 100)

    assert calls.count("depth") == 1
    assert calls.count("plain") == 2  # the bytes, and the document that moves change


def test_long_patches_copy_each_container_once() -> None:
    items = [{"n": number} for number in range(20_000)]
    document = {"items": items}

    result = patched(document, *(replace(f"/items/{index}/n", -1) for index in range(5_000)))

    assert [item["n"] for item in result["items"][4_998:5_002]] == [-1, -1, 5_000, 5_001]
    assert result["items"][19_999] is items[19_999]
    assert items[0] == {"n": 0}


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "1.0",
        "0.1",
        "-0.0",
        "18446744073709551616",
        "-99999999999999999999999999",
        "true",
        "[1,1.0]",
    ],
)
def test_numbers_come_out_as_they_went_in(text: str) -> None:
    document = decode_document(b'{"a":' + text.encode() + b"}")

    assert encode(patched(document, add("/b", 1))) == b'{"a":' + text.encode() + b',"b":1}'


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 300 + b"]" * 300, b"[" * 5000, b"\xff", b"9" * 5000]
)
def test_documents_that_cannot_be_read(body: bytes) -> None:
    with pytest.raises(DecodeError, match="json: "):
        decode_document(body)
