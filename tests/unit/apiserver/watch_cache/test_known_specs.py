"""A pod whose spec was sent before is read as if it were the first."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from allot.api.decoding import DecodeError
from allot.apiserver.watch_cache import known_specs
from allot.apiserver.watch_cache.caches import resource_named
from allot.apiserver.watch_cache.codecs import RawCodec
from allot.cli.vectors import NOW

POD = resource_named("", "pods")
SPECS = [
    '{"containers":[{"name":"a","image":"b"}]}',
    '{ "containers" : [ {"name": "a", "image": "b"} ] }',
    '{"containers":[{"name":"a","image":"b","resources":{"requests":{"cpu":"1000m"}}}]}',
    '{"containers":[{"name":"a","image":"b"}],"nodeName":"","terminationGracePeriodSeconds":0}',
    '{"containers":[{"name":"a","image":"b"}],"nodeName":null}',
    '{"containers":[{"name":"a","image":"b"}],"unknown":1}',
    '{"containers":[{"name":"a","image":"b"}],"nodeName":"a","nodeName":"b"}',
    '{"containers":[{"name":"a","image":"\\u0062"}]}',
    '{"containers":[{"name":"a","image":"\\":"}]}',
    '{"containers":1}',
    '{"containers":[]}',
    "{}",
    "null",
    "[]",
]
METADATA = [
    '{"name":"a"}',
    '{ "name": "a", "labels": {"a": "b"} }',
    '{"name":"a","labels":{"a":"b","a":"c"}}',
    '{"name":"a","name":"b"}',
    '{"name":"a","labels":{"a":""}}',
    '{"name":"a","labels":{}}',
    '{"name":"a","generateName":""}',
    '{"name":"a","labels":null}',
    '{"name":"a","creationTimestamp":null}',
    '{"name":"a","unknown":1}',
    '{"name":1}',
    '{"name":"\\u0061"}',
    '{"name":"a","labels":{"a":"\\":"}}',
    '{"name":"a","generation":0}',
    '{"name":"a","managedFields":[]}',
    '{"name":"a","annotations":{"a":"null"}}',
    "{}",
    "null",
    "[]",
]
FORMS = [
    '{"kind":"Pod","apiVersion":"v1","metadata":%(metadata)s,"spec":%(spec)s}',
    '{"apiVersion":"v1","kind":"Pod","spec":%(spec)s, "metadata":%(metadata)s}',
    '{"metadata":%(metadata)s,"spec":%(spec)s}',
    '{"kind":null,"metadata":%(metadata)s,"spec":%(spec)s}',
    '{"kind":"Pod","kind":"Pod","metadata":%(metadata)s,"spec":%(spec)s}',
    '{"metadata":%(metadata)s,"spec":{},"spec":%(spec)s}',
    '{"metadata":{"name":"x"},"metadata":%(metadata)s,"spec":%(spec)s}',
    '{"metadata":%(metadata)s,"spec":%(spec)s,"status":{}}',
    '{"metadata":%(metadata)s,"spec":%(spec)s,"status":{"phase":"Failed"}}',
    '{"metadata":%(metadata)s,"spec":%(spec)s,"unknown":1}',
    '{"spec":%(spec)s}',
    '{"metadata":%(metadata)s}',
]


def read(codec: RawCodec, body: bytes) -> Any:
    try:
        obj, issues = codec.decode_strictly(body, "v1", NOW)
    except DecodeError as error:
        return str(error), error.located
    return obj.data, issues, codec.encode(obj, "v1")


def test_a_known_spec_changes_nothing() -> None:
    knowing = RawCodec(POD)
    for spec in SPECS:
        plain = f'{{"metadata":{{"name":"first"}},"spec":{spec}}}'.encode()
        read(knowing, plain)
        for form, metadata in product(FORMS, METADATA):
            body = (form % {"metadata": metadata, "spec": spec}).encode()
            read(knowing, body)

            assert read(knowing, body) == read(RawCodec(POD), body), body


def test_pods_of_one_template_share_their_spec() -> None:
    codec = RawCodec(POD)
    bodies = [f'{{"metadata":{{"name":"{name}"}},"spec":{SPECS[0]}}}'.encode() for name in "abc"]

    specs = [codec.decode_strictly(body, "v1", NOW)[0].data["spec"] for body in bodies]

    assert specs[0] is specs[1] is specs[2]


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_specs, "MAX_KNOWN", 2)
    codec = RawCodec(POD)
    assert codec._known_specs is not None

    for name in ("a", "b", "c", "x" * 5000, "x" * 9000):
        spec = SPECS[0].replace('"b"', f'"{name}"')
        codec.decode_strictly(f'{{"metadata":{{}},"spec":{spec}}}'.encode(), "v1", NOW)

    assert [b'"c"' in text for text in codec._known_specs._known] == [True]
