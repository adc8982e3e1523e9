"""Objects in protobuf as the client wants to see them: whole, or as metadata only. There are no tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import cache, partial
from typing import Any, Final

from allot.api.identities import GroupVersionKind
from allot.api.protobuf.envelope import (
    MAGIC,
    encode_document,
    in_envelope,
    target_of,
    watch_event,
)
from allot.api.protobuf.wire import BYTES, delimited, encode_tag, encode_varint
from allot.api.protobuf.writing import write
from allot.apiserver.api_errors import ApiError
from allot.apiserver.http.negotiation import METADATA, PROTOBUF, Accepted
from allot.apiserver.http.rendering import META, Renderer, metadata_of
from allot.apiserver.http.responses import Response
from allot.apiserver.pacing import LARGE, Pacer, Workers
from allot.apiserver.registry.reading import ListMeta
from allot.apiserver.watch_cache.codec import Codec
from allot.apiserver.watch_cache.object_changes import ObjectChange
from allot.apiserver.watch_cache.stored_objects import StoredObject

COST: Final = 2
"""A byte of JSON that becomes protobuf takes as long as so many that stay JSON."""
WHOLE_BYTES: Final = 256 * 1024
"""Shorter lists are answered in one piece, with their length."""
_STATUS: Final = GroupVersionKind("", "v1", "Status")
_END: Final = b"\x1a\0\x22\0"
_ITEM: Final = encode_tag(2, BYTES)


class ProtobufRenderer(Renderer):
    """Writes objects of one resource in one version, whole."""

    def __init__(self, codec: Codec, version: str) -> None:
        super().__init__(codec, version)
        self._shown = self._gvk

    def message(self, stored: StoredObject) -> bytes:
        """The message of an object, as it stands in lists."""
        return stored.message(self.codec, self.version)

    def work_size(self, stored: StoredObject) -> int:
        if stored.has_message(self.codec, self.version):
            return 0
        return len(stored.entry.value) * COST

    def one(self, stored: StoredObject) -> bytes:
        return self._in_envelope(self.message(stored))

    def item(self, stored: StoredObject) -> bytes:
        message = self.message(stored)
        return b"%b%b%b" % (_ITEM, encode_varint(len(message)), message)

    def list_type(self) -> GroupVersionKind:
        return self._shown._replace(kind=f"{self._shown.kind}List")

    def event(self, change: ObjectChange, type_: str) -> bytes:
        return change.frame(type_, self.codec, self.version)

    def initial(self, stored: StoredObject) -> bytes:
        return watch_event("ADDED", self.one(stored))

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        content = write({"metadata": metadata}, target_of(self._shown))
        return watch_event("BOOKMARK", self._in_envelope(content))

    def error(self, error: ApiError) -> bytes:
        return watch_event("ERROR", encode_document(error.status(), _STATUS))

    def _in_envelope(self, message: bytes) -> bytes:
        return in_envelope(message, str(self._shown.group_version), self._shown.kind)


class PartialProtobufRenderer(ProtobufRenderer):
    """Writes metadata only."""

    def __init__(self, codec: Codec, version: str, meta_version: str) -> None:
        super().__init__(codec, version)
        self._shown = GroupVersionKind(META, meta_version, METADATA)

    def work_size(self, stored: StoredObject) -> int:
        return len(stored.entry.value)

    def message(self, stored: StoredObject) -> bytes:
        return self._partial(metadata_of(stored))

    def event(self, change: ObjectChange, type_: str) -> bytes:
        metadata = metadata_of(change.shown(type_)) | {"resourceVersion": str(change.revision)}
        return watch_event(type_, self._in_envelope(self._partial(metadata)))

    def _partial(self, metadata: dict[str, Any]) -> bytes:
        return write({"metadata": metadata}, target_of(self._shown))


def protobuf_renderer(accepted: Accepted, codec: Codec, version: str) -> ProtobufRenderer:
    """The form of answer the client asked for."""
    if accepted.transform:
        return PartialProtobufRenderer(codec, version, accepted.version)
    return _plain_renderer(codec, version)


_plain_renderer: Final = cache(ProtobufRenderer)


async def protobuf_list(
    objects: Sequence[StoredObject], renderer: ProtobufRenderer, meta: ListMeta, workers: Workers
) -> Response:
    """The answer that lists the objects. Its length comes first, so that all of it is made before it is sent."""
    items: list[bytes] = []
    pacer = Pacer()
    for stored in objects:
        size = renderer.work_size(stored)
        work = partial(renderer.item, stored)
        items.append(work() if size <= LARGE else await workers.run(size, work))
        if pacer.is_due:
            await pacer.pause()
    gvk = renderer.list_type()
    list_meta = write({"metadata": meta.as_json()}, target_of(gvk))
    size = len(list_meta) + sum(map(len, items))
    type_meta = delimited(1, str(gvk.group_version).encode()) + delimited(2, gvk.kind.encode())
    head = b"%b%b%b%b%b" % (MAGIC, delimited(1, type_meta), _ITEM, encode_varint(size), list_meta)
    if size <= WHOLE_BYTES:
        return Response(200, b"".join((head, *items, _END)), PROTOBUF)
    return Response(200, head, PROTOBUF, more=_pieces(items))


async def _pieces(items: list[bytes]) -> AsyncIterator[bytes]:
    """Items in pieces that are worth sending."""
    parts: list[bytes] = []
    size = 0
    for item in items:
        parts.append(item)
        size += len(item)
        if size >= WHOLE_BYTES // 4:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join((*parts, _END))
