"""Stored JSON to protobuf: the same bytes as from values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from allot.api.protobuf import memory
from allot.api.protobuf.targets import Target
from allot.api.protobuf.wire import ProtobufError
from allot.api.protobuf.writing import write, write_json

POD = Target("core.v1.Pod")
CLAIM = Target("resource.v1.ResourceClaim")


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    memory.WRITTEN.forget()


def written(document: dict[str, Any], target: Target = POD) -> bytes:
    """The message, made twice: from its values, and from what is remembered."""
    body = msgspec.json.encode(document)
    first = write_json(body, target, "")
    assert write_json(body, target, "") == first
    return first


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"metadata": {"name": "x"}}, id="no-spec"),
        pytest.param({"metadata": {"name": "x"}, "spec": None}, id="null-spec"),
        pytest.param({"metadata": None, "spec": {}}, id="null-metadata"),
        pytest.param({"metadata": {"managedFields": None}, "spec": {}}, id="null-list"),
        pytest.param({"metadata": {"managedFields": [None]}, "spec": {}}, id="null-item"),
        pytest.param(
            {"metadata": {"managedFields": [{"manager": "m", "fieldsV1": None}]}}, id="null-fields"
        ),
        pytest.param(
            {"metadata": {"managedFields": [{"fieldsV1": {"f:spec": {"f:x": {}}}}]}}, id="fields"
        ),
        pytest.param(
            {"metadata": {}, "spec": {"containers": None, "volumes": [None], "affinity": None}},
            id="nulls-within-parts",
        ),
        pytest.param(
            {"metadata": {}, "spec": {"containers": [{"name": "a", "env": [{"name": "null"}]}]}},
            id="null-as-text",
        ),
        pytest.param({"metadata": {}, "spec": {}, "unknown": {"a": [1]}}, id="unknown-field"),
    ],
)
def test_it_is_written_like_its_values(document: dict[str, Any]) -> None:
    assert written(document) == write(document, POD)


def test_versions_are_added() -> None:
    document = {"metadata": {"name": "x"}, "spec": {"nodeName": "n"}}
    body = msgspec.json.encode(document)

    versioned = {**document, "metadata": {"name": "x", "resourceVersion": "17"}}
    assert write_json(body, POD, "17") == write(versioned, POD)


def test_opaque_parameters_keep_their_bytes() -> None:
    parameters = b'{ "z" : 1.50,\n"a": [ ] }'
    body = (
        b'{"metadata":{"name":"x"},"spec":{"devices":{"config":[{"opaque":{"driver":"d","parameters":'
        + parameters
        + b"}}]}}}"
    )
    assert parameters in write_json(body, CLAIM, "1")
    assert parameters in write_json(body, CLAIM, "2")


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"metadata": {"managedFields": "text"}}, id="text-for-list"),
        pytest.param({"metadata": {}, "spec": {"containers": "text"}}, id="text-for-containers"),
        pytest.param({"metadata": {}, "spec": "text"}, id="text-for-message"),
    ],
)
def test_what_does_not_fit_is_an_error(document: dict[str, Any]) -> None:
    with pytest.raises(ProtobufError):
        write_json(msgspec.json.encode(document), POD, "")


def test_only_the_device_that_changed_is_written_anew() -> None:
    devices = [{"name": f"gpu-{n}", "attributes": {"index": {"int": n}}} for n in range(128)]
    document = {"metadata": {"name": "x"}, "spec": {"driver": "d", "devices": devices}}
    slices = Target("resource.v1.ResourceSlice")
    write_json(msgspec.json.encode(document), slices, "1")
    all_of_them = memory.WRITTEN.bytes
    devices[77]["attributes"] = {"index": {"int": 1000}}

    content = write_json(msgspec.json.encode(document), slices, "2")

    assert 0 < memory.WRITTEN.bytes - all_of_them < all_of_them / 100
    document["metadata"] = {"name": "x", "resourceVersion": "2"}
    memory.WRITTEN.forget()
    assert content == write(document, slices)
