"""Pods of watches, whose specs are read once: always what the general codec reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allot.api.core import Pod
from allot.client.codecs import RawCodec
from allot.client.errors import ApiStatusError, UnreadableAnswerError
from allot.client.pod_codec import MAX_BYTES, MAX_SPECS, PodCodec
from allot.client.resources import PODS

VIEWS = ("key", "claim_entries", "volumes", "node_name", "phase", "is_finished", "used_claims")
METADATA = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "5"}
CLAIMS = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}


def line(spec: Any, status: Any = None, type_: str = "ADDED", **metadata: Any) -> bytes:
    shown = {"phase": "Pending"} if status is None else status
    return msgspec.json.encode(
        {
            "type": type_,
            "object": {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": METADATA | metadata,
                "spec": spec,
                "status": shown,
            },
        }
    )


def assert_same(event: bytes, codec: PodCodec) -> None:
    wanted = RawCodec(Pod, PODS.gvk).decode_event(event)
    for _ in range(2):  # the second time its spec is known
        found = codec.decode_event(event)
        assert found == wanted
        assert found.object is not None
        assert wanted.object is not None
        for view in VIEWS:
            assert getattr(found.object, view) == getattr(wanted.object, view), view


names = st.sampled_from(["", "a", "a.b-1", 'a"', "a\\", "A", "]", "a,"])
values = st.recursive(
    st.none() | st.integers() | names,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "nodeName", "spec"]), inner, max_size=3)
    ),
    max_leaves=6,
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "nodeName": names,
        "nodeSelector": st.dictionaries(st.sampled_from(["nodeName", "a"]), names),
        "x": values,
        "resourceClaims": st.just(CLAIMS["resourceClaims"]),
    },
)
ordered_specs = st.permutations(["nodeName", "nodeSelector", "x", "resourceClaims"]).flatmap(
    lambda order: specs.map(lambda spec: {name: spec[name] for name in order if name in spec})
)


@settings(max_examples=300)
@given(spec=ordered_specs, phase=st.sampled_from([None, "Running", "Failed", 3]))
def test_a_pod_is_what_the_general_codec_reads(spec: dict[str, Any], phase: Any) -> None:
    codec = PodCodec(PODS.gvk)
    assert_same(line({"a": 1}), codec)
    status = {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "p-c-1"}]}
    assert_same(line(spec, status if phase is None else {"phase": phase, **status}), codec)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(line(None), id="no-spec"),
        pytest.param(line({"resourceClaims": [3]}), id="entries-are-not-objects"),
        pytest.param(line({}, "x"), id="status-is-a-text"),
        pytest.param(line({"a": "x" * MAX_BYTES}), id="large"),
        pytest.param(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"5"}}}', id="parts"),
        pytest.param(line({}).replace(b'"kind"', b'"new":1,"kind"'), id="unknown-part"),
        pytest.param(line({}, type_="BOOKMARK"), id="bookmark"),
        pytest.param(
            b'{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1",'
            b'"metadata":{"resourceVersion":"5"},"spec":{"a":1},"spec":{"b":2},"status":{}}}',
            id="spec-twice",
        ),
    ],
)
def test_unusual_pods_are_what_the_general_codec_reads(event: bytes) -> None:
    wanted = RawCodec(Pod, PODS.gvk).decode_event(event)

    assert PODS.codec.decode_event(event) == wanted
    assert PODS.codec.decode_event(event) == wanted


def test_errors_are_raised() -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "m"}
    with pytest.raises(ApiStatusError) as raised:
        PODS.codec.decode_event(msgspec.json.encode({"type": "ERROR", "object": status}))
    assert raised.value.is_expired
    for broken in (b"", b"[]", line({})[:-3], line({}).replace(b"resourceVersion", b"other")):
        with pytest.raises(UnreadableAnswerError):
            PODS.codec.decode_event(broken)
    with pytest.raises(UnreadableAnswerError):
        PODS.codec.decode_event(line({}).replace(b'"spec":{}', b'"spec":{"a":}'))


def test_pods_and_versions_share_their_spec() -> None:
    codec = PodCodec(PODS.gvk)
    spec = {"containers": [{"name": "m"}], **CLAIMS}
    first, second, bound = (
        codec.decode_event(event).object
        for event in (
            line(spec),
            line(spec, {"phase": "Running"}, name="other"),
            line({**spec, "nodeName": "node-1"}),
        )
    )

    assert first is not None
    assert second is not None
    assert bound is not None
    assert second.data["spec"] is first.data["spec"]
    assert bound.data["spec"]["containers"] is first.data["spec"]["containers"]
    assert second.claim_entries is first.claim_entries is bound.claim_entries
    assert (first.node_name, bound.node_name) == ("", "node-1")
    assert first.data["spec"] == spec


def test_few_specs_are_kept() -> None:
    codec = PodCodec(PODS.gvk)
    for number in range(3 * MAX_SPECS):
        codec.decode_event(line({"a": number, "nodeName": f"n{number}"}))
        codec.decode_event(line({"a": "x" * MAX_BYTES, "b": number}))
    codec.decode_event(line({"resourceClaims": [3]}))

    assert len(codec._known) <= MAX_SPECS
    assert all(len(spec) <= MAX_BYTES for spec in codec._known)
