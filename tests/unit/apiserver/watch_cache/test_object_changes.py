"""Lines of watches: which of them are kept."""

from __future__ import annotations

from copy import copy

import msgspec

from allot.apiserver.watch_cache.caches import resource_named
from allot.apiserver.watch_cache.codecs import codec_for
from allot.apiserver.watch_cache.object_changes import ObjectChange
from allot.apiserver.watch_cache.stored_objects import StoredObject, type_head
from allot.storage.interface import Entry

CODEC = codec_for(resource_named("resource.k8s.io", "resourceclaims"))
HEAD = type_head("ResourceClaim", "resource.k8s.io/v1")
BETA_HEAD = type_head("ResourceClaim", "resource.k8s.io/v1beta1")


def stored(revision: int) -> StoredObject:
    value = b'{"metadata":{"name":"a","uid":"u"},"spec":{"devices":{}}}'
    return StoredObject(Entry("k", value, revision, 1), CODEC)


def test_a_copy_of_what_is_stored_is_kept_for_the_third_watch() -> None:
    change = ObjectChange(2, stored(1), stored(2))

    lines = [change.line("MODIFIED", CODEC, "v1", HEAD) for _ in range(3)]

    assert lines[0] == lines[1] == lines[2]
    assert lines[0] is not lines[1]
    assert lines[1] is lines[2]
    assert msgspec.json.decode(lines[0])["object"]["metadata"]["resourceVersion"] == "2"


def test_watches_that_see_different_types_share_nothing() -> None:
    change = ObjectChange(2, stored(1), stored(2))

    modified = change.line("MODIFIED", CODEC, "v1", HEAD)
    added = change.line("ADDED", CODEC, "v1", HEAD)
    deleted = change.line("DELETED", CODEC, "v1", HEAD)

    assert [msgspec.json.decode(line)["type"] for line in (modified, added, deleted)] == [
        "MODIFIED",
        "ADDED",
        "DELETED",
    ]
    assert change.line("DELETED", CODEC, "v1", HEAD) is not deleted
    assert change.line("DELETED", CODEC, "v1", HEAD) is change.line("DELETED", CODEC, "v1", HEAD)


def test_a_line_in_another_version_is_kept_at_once() -> None:
    change = ObjectChange(2, None, stored(2))

    line = change.line("ADDED", CODEC, "v1beta1", BETA_HEAD)

    assert change.line("ADDED", CODEC, "v1beta1", BETA_HEAD) is line
    assert change.line("ADDED", CODEC, "v1", HEAD) != line


def test_a_line_of_another_codec_is_kept_at_once() -> None:
    other = copy(CODEC)
    change = ObjectChange(2, None, stored(2))

    line = change.line("ADDED", other, "v1", HEAD)

    assert change.line("ADDED", other, "v1", HEAD) is line
