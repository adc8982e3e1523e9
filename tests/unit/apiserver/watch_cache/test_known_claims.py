"""A claim whose spec was sent before is read as if it were the first."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from allot.api.claims import ResourceClaim
from allot.api.decoding import DecodeError
from allot.apiserver.api_errors import ApiError
from allot.apiserver.http.type_checks import check_type
from allot.apiserver.watch_cache import known_specs
from allot.apiserver.watch_cache.caches import resource_named
from allot.apiserver.watch_cache.codecs import TypedCodec
from allot.cli.vectors import NOW

CLAIM = resource_named("resource.k8s.io", "resourceclaims")
SPECS = [
    '{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}',
    '{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","allocationMode":"ExactCount","count":1}}]}}',
    '{"devices": {"requests":[{"name":"r","exactly":{"deviceClassName":"\\u0063"}}]}}',
    '{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","unknown":1}}]}}',
    '{"devices":{"requests":[{"name":"r","name":"s","exactly":{"deviceClassName":"c"}}]}}',
    '{"devices":{"requests":[{"name":"r","exactly":null}]}}',
    '{"devices":{"requests":null}}',
    '{"devices":{"requests":1}}',
    "{}",
    "null",
]
METADATA = [
    '{"name":"a","namespace":"n"}',
    '{"namespace":"n","name":"a"}',
    '{"name":"a","name":"b"}',
    '{"name":"a","unknown":1}',
    '{"name":"a","labels":{}}',
    '{"name":"a","labels":{"a":"\xe4"}}',
    '{"name":"a","creationTimestamp":null}',
    '{"name":"a","creationTimestamp":"2026-11-19T04:24:23Z","finalizers":["f"]}',
    '{"name":"a","creationTimestamp":"2026-11-19T04:24:23.500000Z"}',
    '{"name":"a","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true}]}',
    '{"name":"a","ownerReferences":[{"kind":"Pod","name":"p","uid":"u"}]}',
    '{"name":"a","managedFields":[]}',
    '{"name":"a","managedFields":[{"unknown":1}]}',
    '{"name":1}',
    "{}",
    "null",
]


def an_allocation(more_of_result: str = "", more: str = "") -> str:
    """The JSON of a status, with more fields of its only result and of the allocation."""
    result = f'{{"request":"r","driver":"d","pool":"p","device":"v"{more_of_result}}}'
    return f'{{"allocation":{{"devices":{{"results":[{result}]}}{more}}}}}'


DEEP = "[" * 250 + "]" * 250
STATUSES = [
    "",
    "{}",
    "null",
    '{"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]}',
    '{"reservedFor":[]}',
    an_allocation(more=',"allocationTimestamp":"2026-11-19T04:24:23Z"'),
    an_allocation(more=',"allocationTimestamp":"2026-11-19T04:24:23.250000Z"'),
    an_allocation(',"unknown":1'),
    an_allocation(',"consumedCapacity":{"m":"1024Mi"}'),
    an_allocation(',"consumedCapacity":{"m":"1Gi"}'),
    an_allocation(',"tolerations":[{"key":"k"}]'),
    f'{{"allocation":{{"devices":{{"config":[{{"source":"FromClaim","opaque":{{"driver":"d","parameters":{DEEP}}}}}]}}}}}}',
    f'{{"devices":[{{"driver":"d","pool":"p","device":"v","data":{DEEP}}}]}}',
    '{"devices":[{"driver":"d","pool":"p","device":"v","data":{"a":1}}]}',
    '{"devices":[{"driver":"d","pool":"p","device":"v","data":"\\ud800"}]}',
]
FORMS = [
    '{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/%s","metadata":%s,"spec":%s%s}',
    '{"apiVersion":"resource.k8s.io/%s","kind":"ResourceClaim","metadata":%s,"spec":%s%s}',
    '{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/%s","metadata":%s,"spec":%s%s,"unknown":1}',
    '{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/%s","metadata":%s,"spec":%s%s,"status":{}}',
    '{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/%s","metadata":%s,"spec":{},"spec":%s%s}',
    '{"kind":"DeviceClass","apiVersion":"resource.k8s.io/%s","metadata":%s,"spec":%s%s}',
    '{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/%s", "metadata":%s,"spec":%s%s}',
]  # fmt: skip
VERSIONS = ["v1", "v1beta2", "v1beta1"]


def a_body(version: str, metadata: str, spec: str, status: str = "", form: str = FORMS[0]) -> bytes:
    return (form % (version, metadata, spec, f',"status":{status}' if status else "")).encode()


def read(codec: TypedCodec, body: bytes, version: str) -> Any:
    """As it is read if nothing is known."""
    try:
        check_type(body, CLAIM.gvk(version))
        return codec.decode_strictly(body, version, NOW)
    except (ApiError, DecodeError) as error:
        return str(error)


def test_a_known_spec_changes_nothing() -> None:
    knowing = TypedCodec(CLAIM)
    times_known = 0
    for version, spec in product(VERSIONS, SPECS):
        read(knowing, a_body(version, METADATA[0], spec), version)
        for metadata, status, form in product(METADATA, STATUSES, FORMS):
            body = a_body(version, metadata, spec, status, form)
            known = knowing.decode_known(body, version)
            if known is not None:
                times_known += 1
                assert (known, []) == read(TypedCodec(CLAIM), body, version), body
    assert times_known > 50


def test_claims_of_one_template_share_their_spec() -> None:
    codec = TypedCodec(CLAIM)
    first, _ = codec.decode_strictly(a_body("v1", METADATA[0], SPECS[0]), "v1", NOW)

    known = codec.decode_known(a_body("v1", METADATA[9], SPECS[0], STATUSES[3]), "v1")

    assert isinstance(known, ResourceClaim)
    assert known.spec is first.spec
    assert known.spec.devices.requests[0].exactly is not None
    assert known.spec.devices.requests[0].exactly.count == 1
    assert known.metadata.owner_references[0].name == "p"
    assert known.status.reserved_for[0].name == "p"


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_specs, "MAX_KNOWN", 2)
    codec = TypedCodec(CLAIM)
    bodies = [
        a_body("v1", METADATA[0], SPECS[0].replace('"c"', f'"{name}"'))
        for name in ("a", "b", "c", "x" * 5000, "x" * 9000)
    ]
    for body in bodies:
        codec.decode_strictly(body, "v1", NOW)

    assert [codec.decode_known(body, "v1") is not None for body in bodies] == [
        False, False, True, False, False,
    ]  # fmt: skip


def test_other_kinds_are_not_known() -> None:
    codec = TypedCodec(resource_named("resource.k8s.io", "deviceclasses"))
    body = b'{"kind":"DeviceClass","apiVersion":"resource.k8s.io/v1","metadata":{"name":"a"},"spec":{}}'
    codec.decode_strictly(body, "v1", NOW)

    assert codec.decode_known(body, "v1") is None
