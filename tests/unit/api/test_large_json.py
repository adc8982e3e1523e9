"""Large JSON is decoded in pieces, to the same values."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from allot.api.large_json import LARGE, MAX_DEPTH, PIECE, decode_in_pieces, decode_path


def managed_object(managers: int = 40, keys: int = 2_000) -> dict[str, Any]:
    fields: dict[str, Any] = {"f:data": {f"f:k{number}": {} for number in range(keys)}}
    entries = [{"manager": f"m{number}", "fieldsV1": fields} for number in range(managers)]
    return {"metadata": {"name": "a", "managedFields": entries}, "data": {"k": "v"}}


def nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(managed_object(), id="managed fields"),
        pytest.param(["x" * 1_000] * 500, id="list"),
        pytest.param("é" * LARGE, id="string"),
        pytest.param({"a": None, "b": [1, 2.5, True, "{["], "c": "]" * LARGE}, id="map"),
        pytest.param(nested(MAX_DEPTH, ["x" * 100] * 5_000), id="nested deeply"),
        pytest.param({"a": 1}, id="small"),
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_values_are_the_same(value: Any, indent: int | None) -> None:
    body = b"\n " + json.dumps(value, indent=indent, ensure_ascii=False).encode()

    assert decode_in_pieces(body) == value


def test_no_call_decodes_much(monkeypatch: pytest.MonkeyPatch) -> None:
    body = msgspec.json.encode(managed_object())
    assert len(body) > 3 * LARGE
    sizes: list[int] = []

    def counting(piece: Any) -> Any:
        sizes.append(memoryview(piece).nbytes)
        return msgspec.json.Decoder().decode(piece)

    monkeypatch.setattr(msgspec.json, "decode", counting)
    decode_in_pieces(body)

    assert max(sizes) <= PIECE


@pytest.mark.parametrize("body", [b"{" * LARGE + b"!", b'{"a": ' + b"1" * LARGE + b"x}"])
def test_invalid_json_is_an_error(body: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, RecursionError)):
        decode_in_pieces(body)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["spec", "nodeName"], "n"),
        (["spec"], {"nodeName": "n", "ports": [1]}),
        (["spec", "missing"], None),
        (["spec", "nodeName", "below"], None),
        (["spec", "ports", "0"], None),
        (["status", "phase"], None),
        (["empty", "phase"], None),
        ([], {"spec": {"nodeName": "n", "ports": [1]}, "status": None, "empty": {}}),
    ],
)
def test_one_value_of_a_document(path: list[str], value: Any) -> None:
    document = {"spec": {"nodeName": "n", "ports": [1]}, "status": None, "empty": {}}

    assert decode_path(msgspec.json.encode(document), path) == value
