"""Selections: the same answer whichever form of an object is kept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from allot.api.identities import GroupVersion
from allot.api.selectors import EVERYTHING
from allot.apiserver.kinds.resources import find
from allot.apiserver.registry.selection import Selection
from allot.apiserver.selectors import parse_field_selector, parse_label_selector
from allot.apiserver.watch_cache.caches import key_prefix
from allot.apiserver.watch_cache.codecs import storage_codec
from allot.apiserver.watch_cache.stored_objects import StoredObject
from allot.storage.interface import Entry

POD = {"metadata": {"name": "a", "namespace": "n", "labels": {"x": "y"}}}
SLICE = {"metadata": {"name": "a"}, "spec": {"driver": "d", "pool": {"name": "p"}}}


@pytest.mark.parametrize(
    ("group", "plural", "document", "fields", "labels", "is_selected"),
    [
        ("", "pods", POD, "spec.nodeName!=", "", False),
        ("", "pods", POD, "spec.nodeName=", "", True),
        ("", "pods", {**POD, "spec": {"nodeName": "b"}}, "spec.nodeName!=", "", True),
        ("", "pods", {**POD, "spec": {"nodeName": "b"}}, "spec.nodeName=c", "", False),
        ("", "pods", POD, "spec.hostNetwork=false", "", True),
        ("", "pods", {**POD, "spec": {"hostNetwork": True}}, "spec.hostNetwork=true", "", True),
        ("", "pods", {**POD, "spec": []}, "spec.nodeName=", "", True),
        ("", "pods", POD, "metadata.name=a,metadata.namespace=n", "", True),
        ("", "pods", POD, "metadata.name!=a", "", False),
        ("", "pods", POD, "spec.nodeName=", "x=y", True),
        ("", "pods", POD, "spec.nodeName=", "x=z", False),
        ("", "pods", POD, "", "x=y", True),
        ("", "replicationcontrollers", POD, "status.replicas=0", "", True),
        (
            "",
            "replicationcontrollers",
            {**POD, "status": {"replicas": 2}},
            "status.replicas=2",
            "",
            True,
        ),
        ("resource.k8s.io", "resourceslices", SLICE, "spec.driver=d,spec.nodeName=", "", True),
        ("resource.k8s.io", "resourceslices", SLICE, "spec.driver!=d", "", False),
        ("resource.k8s.io", "resourceslices", SLICE, "spec.pool.name=p", "", True),
    ],
)
def test_what_is_selected_does_not_depend_on_the_form_that_is_kept(
    group: str, plural: str, document: dict[str, Any], fields: str, labels: str, is_selected: bool
) -> None:
    resource = find(GroupVersion(group, "v1"), plural)
    assert resource is not None
    selection = Selection(
        resource,
        key_prefix(resource),
        parse_label_selector(labels) if labels else EVERYTHING,
        parse_field_selector(fields),
    )
    codec = storage_codec(resource)
    entry = Entry(key_prefix(resource) + "n/a", msgspec.json.encode(document), 7, 7)
    written, decoded, only_stored = (StoredObject(entry, codec) for _ in range(3))
    written.adopt(codec.decode_stored(entry.value))
    assert decoded.object.metadata.resource_version == "7"

    assert [selection.matches(each) for each in (written, decoded, only_stored)] == [
        is_selected
    ] * 3
    assert written.kept_content is not None
    assert not written.kept_content.metadata.resource_version


def test_what_is_evicted_is_not_kept() -> None:
    resource = find(GroupVersion("", "v1"), "pods")
    assert resource is not None
    codec = storage_codec(resource)
    entry = Entry(key_prefix(resource) + "n/a", msgspec.json.encode(POD), 7, 7)
    stored = StoredObject(entry, codec)

    assert stored.kept_content is None
    obj = stored.object
    assert stored.kept_content is obj
    stored.forget("decoded")
    assert stored.kept_content is None
