"""Events that are written as schedulers write them are read as any others."""

from __future__ import annotations

from itertools import product

import pytest

from allot.apiserver.http.type_checks import check_type
from allot.apiserver.watch_cache.caches import resource_named
from allot.apiserver.watch_cache.codecs import RawCodec, codec_for
from allot.apiserver.watch_cache.plain_events import MAX_PLAIN, plain_event
from allot.cli.vectors import NOW

EVENTS = resource_named("events.k8s.io", "events")
PLAIN = (
    b'{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"namespace":"n","name":"p.1"},"type":"Normal",'
    b'"reason":"Scheduled","eventTime":"2026-11-19T04:24:23.947181Z","action":"Binding","regarding":{"apiVersion":"v1",'
    b'"kind":"Pod","namespace":"n","name":"p","uid":"u","resourceVersion":"1"},"note":"Successfully assigned",'
    b'"reportingController":"default-scheduler","reportingInstance":"default-scheduler-vm"}'
)
CHANGES = [
    (b"", b""),
    (b'"Normal"', b'""'),
    (b'"type":"Normal",', b""),
    (b'"Scheduled"', b"null"),
    (b'"Binding"', b"1"),
    (b'{"namespace":"n","name":"p.1"}', b"{}"),
    (b'{"namespace":"n","name":"p.1"}', b'{"name":"p.1","namespace":"n"}'),
    (b'{"namespace":"n","name":"p.1"}', b'{"namespace":"n","name":"p.1","labels":{"a":"b"}}'),
    (b'{"namespace":"n","name":"p.1"}', b'{"namespace":"n","name":"p.1","unknown":"b"}'),
    (b'"name":"p",', b'"name":"p","name":"q",'),
    (b'"resourceVersion":"1"', b'"resourceVersion":"1","fieldPath":"f"'),
    (b".947181Z", b"Z"),
    (b".947181Z", b".000000Z"),
    (b".947181Z", b".947Z"),
    (b".947181Z", b".947181+00:00"),
    (b"2026-11-19T04:24:23.947181Z", b""),
    (b"Successfully", "Erfolgreich wie nie: ä".encode()),
    (b"Successfully", b'a: 0, \\"b\\":\\"\\"'),
    (b"Successfully", b"\\u0041"),
    (b"Successfully", b"\xff"),
    (b'"note"', b'"count":0,"note"'),
    (b'"note"', b'"series":{"count":2},"note"'),
    (b'"note"', b'"unknown":1,"note"'),
    (b'"note"', b'"kind":"Pod","note"'),
    (b"events.k8s.io/v1", b"events.k8s.io/v2"),
    (b",", b", "),
    (b"}", b"}\n"),
]


def test_a_plain_event_is_read_as_any_other() -> None:
    codec = codec_for(EVENTS)
    assert isinstance(codec, RawCodec)
    times_plain = 0
    for (one, instead), (other, by) in product(CHANGES, repeat=2):
        body = PLAIN.replace(one, instead) if one else PLAIN
        body = body.replace(other, by) if other else body
        known = codec.decode_known(body, "v1")
        if known is not None:
            times_plain += 1
            check_type(body, EVENTS.gvk("v1"))
            again, issues = codec.decode_strictly(body, "v1", NOW)
            assert not issues, body
            assert list(known.data.items()) == list(again.data.items()), body
    assert times_plain > 10


@pytest.mark.parametrize(("length", "is_plain"), [(10, True), (MAX_PLAIN, False)])
def test_a_long_event_is_not_plain(length: int, is_plain: bool) -> None:
    body = PLAIN.replace(b"Successfully", b"S" * length)

    assert (plain_event(body) is not None) == is_plain
