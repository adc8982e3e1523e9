"""How objects of raw kinds are written to the store, and what is kept of them instead of reading that again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from allot.api.base import replace
from allot.api.identities import GroupVersion
from allot.api.raw import RawObject
from allot.apiserver.kinds.resources import find
from allot.apiserver.watch_cache.codecs import RawCodec, codec_for

METADATA: Final = {"name": "p", "labels": {}, "resourceVersion": "7", "unknown": 1}


def pods() -> RawCodec:
    resource = find(GroupVersion("", "v1"), "pods")
    assert resource is not None
    codec = codec_for(resource)
    assert isinstance(codec, RawCodec)
    return codec


def a_pod(metadata: dict[str, Any] = METADATA) -> RawObject:
    return RawObject({"kind": "Pod", "apiVersion": "v1", "spec": {"a": 1}, "metadata": metadata})


def with_new_metadata(pod: RawObject) -> RawObject:
    entry = {"manager": "m"}
    return pod.with_metadata(replace(pod.metadata, uid="u", managed_fields=(entry,)))


def as_read(pod: RawObject) -> RawObject:
    assert pod.data
    return pod


@pytest.mark.parametrize(
    ("change", "metadata"),
    [
        pytest.param(lambda pod: pod, {"name": "p", "labels": {}, "unknown": 1}, id="unchanged"),
        pytest.param(
            with_new_metadata,
            {"name": "p", "uid": "u", "managedFields": [{"manager": "m"}], "unknown": 1},
            id="changed",
        ),
        pytest.param(
            lambda _: with_new_metadata(a_pod({"name": "p", "resourceVersion": "7"})),
            {"name": "p", "uid": "u", "managedFields": [{"manager": "m"}]},
            id="changed-and-all-known",
        ),
        pytest.param(
            lambda pod: as_read(with_new_metadata(pod)),
            {"name": "p", "uid": "u", "managedFields": [{"manager": "m"}], "unknown": 1},
            id="changed-and-read",
        ),
    ],
)
def test_objects_are_stored_with_their_metadata_first(
    change: Callable[[RawObject], RawObject], metadata: dict[str, Any]
) -> None:
    codec = pods()
    body = codec.encode(change(a_pod()), "v1")

    assert body == msgspec.json.encode({"metadata": metadata, "spec": {"a": 1}})
    written = change(a_pod())
    kept = codec.as_stored(written, written.metadata)
    read = codec.decode_stored(body)
    assert list(kept.data) == list(read.data)
    assert codec.encode(kept, "v1") == body
    version = replace(kept.metadata, resource_version="8")
    newer = codec.as_stored(written, version)
    assert newer.data == kept.with_metadata(version).data == read.with_metadata(version).data
    assert list(newer.data) == list(read.data)
    assert newer.metadata == version
