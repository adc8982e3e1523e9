"""Protobuf is read and written like Kubernetes v1.38 does it, byte for byte.

`data/protobuf.jsonl.gz` has answers of a real kube-apiserver, each in JSON and in protobuf: the objects of
`data/protobuf-objects.yaml` in all their versions, lists, metadata, errors, reviews and watches.
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from allot.api import scheme
from allot.api.decoding import decode
from allot.api.protobuf.envelope import (
    FrameReader,
    decode_document,
    encode_document,
    in_envelope,
    open_envelope,
    target_of,
    watch_event,
)
from allot.api.protobuf.reading import read
from allot.api.protobuf.writing import write

DATA = Path(__file__).parent / "data" / "protobuf.jsonl.gz"
RECORDED = [json.loads(line) for line in gzip.decompress(DATA.read_bytes()).splitlines()]
OBJECTS = [entry for entry in RECORDED if not entry["path"].startswith("WATCH ")]
WATCHES = [entry for entry in RECORDED if entry["path"].startswith("WATCH ")]
OPAQUE_WITH_SPACES = ("resourceclaims/spaced", "v1beta1/namespaces/default/resourceclaims")
"""JSON shows opaque parameters without the spaces they were sent with; protobuf has them as they were."""


def protobuf(entry: dict[str, Any]) -> bytes:
    return base64.b64decode(entry["protobuf"])


def without_nulls(value: Any) -> Any:
    """What is null in Go's JSON is absent in ours."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def expected_document(document: Any) -> Any:
    """JSON of a real server without what protobuf cannot say."""
    cleaned = without_nulls(document)
    if cleaned.get("items") == []:
        del cleaned["items"]  # an empty list is no list
    if cleaned["kind"] == "StatefulSet":
        for template in cleaned["spec"]["volumeClaimTemplates"]:
            del template["kind"], template["apiVersion"]  # only whole bodies say what they are
    if cleaned["kind"] == "PartialObjectMetadataList":
        for item in cleaned["items"]:
            del item["kind"], item["apiVersion"]
    if cleaned["kind"] == "APIResourceList":
        cleaned.setdefault("apiVersion", "v1")
    if cleaned["kind"] == "APIVersions":
        cleaned["apiVersion"] = ""
    return cleaned


@pytest.mark.parametrize("entry", OBJECTS, ids=lambda entry: entry["path"])
def test_recorded_bytes_are_read_as_the_recorded_json(entry: dict[str, Any]) -> None:
    if entry["path"].startswith("POST "):
        pytest.skip("two requests, of which each has its own times")

    assert decode_document(protobuf(entry)) == expected_document(entry["json"])


@pytest.mark.parametrize("entry", OBJECTS, ids=lambda entry: entry["path"])
def test_recorded_bytes_are_written_again_byte_for_byte(entry: dict[str, Any]) -> None:
    body = protobuf(entry)
    gvk = open_envelope(body).gvk
    if entry["path"].endswith(OPAQUE_WITH_SPACES):
        pytest.skip("spaces in opaque parameters survive only in structs")

    assert encode_document(decode_document(body), gvk) == body
    if not entry["path"].startswith("POST "):
        assert encode_document(entry["json"], gvk) == body


DRA_OBJECTS = [
    entry
    for entry in OBJECTS
    if entry["path"].startswith("/apis/resource.k8s.io/")
    and not entry["json"]["kind"].endswith("List")
]


@pytest.mark.parametrize("entry", DRA_OBJECTS, ids=lambda entry: entry["path"])
def test_structs_are_read_and_written_without_a_detour(entry: dict[str, Any]) -> None:
    envelope = open_envelope(protobuf(entry))
    cls = scheme.lookup(envelope.gvk)[1].cls
    target = target_of(envelope.gvk, cls)

    struct = read(envelope.content, target)

    assert write(struct, target) == envelope.content
    from_json = decode(msgspec.json.encode(entry["json"]), cls, envelope.gvk.version)
    shown = [msgspec.json.decode(scheme.encode_hub(value)) for value in (struct, from_json)]
    assert shown[0] == shown[1]


def test_opaque_parameters_keep_their_bytes() -> None:
    (entry,) = (
        found for found in OBJECTS if found["path"].endswith("v1/namespaces/default/resourceclaims/spaced")
    )  # fmt: skip
    envelope = open_envelope(protobuf(entry))
    target = target_of(envelope.gvk, scheme.lookup(envelope.gvk)[1].cls)

    claim = read(envelope.content, target)

    parameters = bytes(claim.spec.devices.config[0].opaque.parameters)
    assert parameters == b'{ "b" : 1,\n "a": "x<y" }'
    assert write(claim, target) == envelope.content


@pytest.mark.parametrize("entry", WATCHES, ids=lambda entry: entry["path"])
def test_events_of_watches(entry: dict[str, Any]) -> None:
    events = list(FrameReader().feed(protobuf(entry)))

    shown = [{"type": event.type, "object": decode_document(event.body)} for event in events]
    expected = [{**event, "object": without_nulls(event["object"])} for event in entry["json"]]
    for event in (*shown, *expected):
        if event["type"] == "BOOKMARK":
            del event["object"]["metadata"]["resourceVersion"]  # two watches, at two moments
    assert shown == expected
    written = b"".join(watch_event(event.type, event.body) for event in events)
    assert written == protobuf(entry)


def test_envelopes_are_written_again_byte_for_byte() -> None:
    for entry in OBJECTS:
        envelope = open_envelope(protobuf(entry))
        body = in_envelope(envelope.content, envelope.api_version, envelope.kind)
        assert body == protobuf(entry)
