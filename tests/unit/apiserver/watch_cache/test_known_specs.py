"""A pod whose spec was sent before is read as if it were the first."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from allot.api.decoding import DecodeError
from allot.apiserver.http.type_checks import check_type
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
    '{"name":"\xe4"}',
    '{"name":"\\x"}',
    '{"name":"a","managedFields":[{"unknown":{"a":null}}]}',
    '{"name":"a","creationTimestamp":"2026-11-19T04:24:23Z","deletionGracePeriodSeconds":0}',
    '{"name":"a","creationTimestamp":"2026-11-19T04:24:23.5+01:00"}',
    '{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"","uid":"u","controller":false}]}',
    '{"name":"a","ownerReferences":[{"kind":"Pod","name":"b","uid":"u"}]}',
    '{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"b","uid":"u","other":1}]}',
    "{}",
    "null",
    "[]",
]
FORMS = [
    '{"kind":"Pod","apiVersion":"v1","metadata":%(metadata)s,"spec":%(spec)s}',
    '{"apiVersion":"v1","kind":"Pod","spec":%(spec)s, "metadata":%(metadata)s}',
    '{"apiVersion":"v1","kind":"Pod","metadata":%(metadata)s,"spec":%(spec)s}',
    '{"kind":"Pod","apiVersion":"v2","metadata":%(metadata)s,"spec":%(spec)s}',
    '{"kind":"Po\\u0064","apiVersion":"v1","metadata":%(metadata)s,"spec":%(spec)s}',
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


def assert_known_is_right(codec: RawCodec, body: bytes) -> bool:
    """Whether the body is read as one that is known: if so, as any other."""
    known = codec.decode_known(body, "v1")
    if known is None:
        return False
    check_type(body, POD.gvk("v1"))
    again, issues = RawCodec(POD).decode_strictly(body, "v1", NOW)
    assert not issues, body
    assert (known.data, known.metadata) == (again.data, again.metadata), body
    assert list(known.data["metadata"]) == list(again.data["metadata"]), body
    return True


def test_a_known_spec_changes_nothing() -> None:
    knowing = RawCodec(POD)
    times_known = 0
    for spec in SPECS:
        plain = f'{{"metadata":{{"name":"first"}},"spec":{spec}}}'.encode()
        read(knowing, plain)
        for form, metadata in product(FORMS, METADATA):
            body = (form % {"metadata": metadata, "spec": spec}).encode()
            read(knowing, body)

            assert read(knowing, body) == read(RawCodec(POD), body), body
            times_known += assert_known_is_right(knowing, body)
    assert times_known > 50


def test_pods_of_one_template_share_their_spec() -> None:
    codec = RawCodec(POD)
    bodies = [f'{{"metadata":{{"name":"{name}"}},"spec":{SPECS[0]}}}'.encode() for name in "abc"]

    specs = [codec.decode_strictly(body, "v1", NOW)[0].data["spec"] for body in bodies]
    plain = (FORMS[0] % {"metadata": METADATA[0], "spec": SPECS[0]}).encode()
    known = codec.decode_known(plain, "v1")

    assert known is not None
    assert specs[0] is specs[1] is specs[2] is known.data["spec"]


def test_only_what_was_read_before_is_known() -> None:
    codec = RawCodec(POD)
    plain = (FORMS[0] % {"metadata": METADATA[0], "spec": SPECS[0]}).encode()

    assert codec.decode_known(plain, "v1") is None
    codec.decode_strictly(plain, "v1", NOW)
    assert codec.decode_known(plain, "v1") is not None
    assert RawCodec(POD).decode_known(plain, "v1") is None


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_specs, "MAX_KNOWN", 2)
    codec = RawCodec(POD)
    assert codec._known_specs is not None

    for name in ("a", "b", "c", "x" * 5000, "x" * 9000):
        spec = SPECS[0].replace('"b"', f'"{name}"')
        codec.decode_strictly(f'{{"metadata":{{}},"spec":{spec}}}'.encode(), "v1", NOW)

    assert [b'"c"' in text for text in codec._known_specs._known] == [True]
