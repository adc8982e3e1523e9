"""Metadata of objects of any kind (PartialObjectMetadata): identity, owners, finalizers.

Only the metadata is requested and cached.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from allot.api.identities import GroupVersionKind, ObjectKey
from allot.api.meta import OwnerReference
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.client.codecs import (
    BROKEN,
    WITHOUT_OBJECT,
    ListPage,
    TypedEvent,
    TypedPage,
    WatchEvent,
    decode_item_by_item,
    decode_unusual_event,
)
from allot.client.errors import UnreadableAnswerError
from allot.client.projection import METADATA
from allot.client.resources import Resource


class Metadata(Struct, rename="camel", frozen=True, gc=False):
    """The metadata that garbage collection needs."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class MetadataObject(Struct, frozen=True):
    """An object with only its metadata."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.metadata.namespace, self.metadata.name)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def owners(self) -> tuple[OwnerReference, ...]:
        return self.metadata.owner_references or ()

    @property
    def finalizers(self) -> tuple[str, ...]:
        return self.metadata.finalizers or ()

    @property
    def is_being_deleted(self) -> bool:
        return self.metadata.deletion_timestamp is not None


def metadata_of(obj: Any) -> MetadataObject:
    """The metadata of a complete object."""
    if isinstance(obj, RawObject):
        return MetadataObject(msgspec.convert(obj.data["metadata"], Metadata))
    found = obj.metadata
    deleted = found.deletion_timestamp
    return MetadataObject(
        Metadata(
            found.name,
            found.namespace,
            found.uid,
            found.resource_version,
            None if deleted is None else written_time(deleted),
            found.deletion_grace_period_seconds,
            found.finalizers or None,
            found.owner_references or None,
        )
    )


def is_same_ownership(old: Any, new: Any) -> bool:
    """Whether two versions of a complete object have the same owners, and neither is being deleted."""
    if isinstance(new, RawObject):
        before, after = old.data["metadata"], new.data["metadata"]
        return (
            before.get("ownerReferences") == after.get("ownerReferences")
            and before.get("deletionTimestamp") is None
            and after.get("deletionTimestamp") is None
        )
    was, now = old.metadata, new.metadata
    return (
        was.owner_references == now.owner_references
        and was.deletion_timestamp is None
        and now.deletion_timestamp is None
    )


_object: Final = msgspec.json.Decoder(MetadataObject)
_page: Final = msgspec.json.Decoder(TypedPage[MetadataObject])
_event: Final = msgspec.json.Decoder(TypedEvent[MetadataObject])
_KIND: Final = "PartialObjectMetadata"


class MetadataCodec:
    """Decodes the metadata of any object. Read-only: use patches to change objects."""

    def decode(self, body: bytes) -> MetadataObject:
        try:
            return _object.decode(body)
        except BROKEN as error:
            raise UnreadableAnswerError(f"not an object with metadata: {error}") from None

    def encode(self, obj: MetadataObject) -> bytes:
        raise TypeError("metadata is not the whole object: patch it")

    def decode_page(self, body: bytes, *, lenient: bool = False) -> ListPage[MetadataObject]:
        try:
            page = _page.decode(body)
        except BROKEN:
            return decode_item_by_item(body, self.decode, _KIND, lenient=lenient)
        return ListPage(
            page.items or [], page.metadata.resource_version, page.metadata.continue_ or ""
        )

    def decode_event(self, line: bytes) -> WatchEvent[MetadataObject]:
        try:
            event = _event.decode(line)
        except BROKEN:
            return decode_unusual_event(line, self.decode, _KIND)
        if event.type in WITHOUT_OBJECT:
            return decode_unusual_event(line, self.decode, _KIND)
        return WatchEvent(event.type, event.object, event.object.metadata.resource_version)

    def decode_bare_event(self, line: bytes) -> WatchEvent[MetadataObject]:
        return self.decode_event(line)

    def key(self, obj: MetadataObject) -> ObjectKey:
        return obj.key

    def resource_version(self, obj: MetadataObject) -> str:
        return obj.metadata.resource_version

    def uid(self, obj: MetadataObject) -> str:
        return obj.metadata.uid

    def in_version(self, gvk: GroupVersionKind) -> MetadataCodec:
        return self


_CODEC: Final = MetadataCodec()


@cache
def metadata_resource(
    group: str, version: str, plural: str, kind: str, *, namespaced: bool
) -> Resource[MetadataObject]:
    """Any resource, with only the metadata of its objects."""
    return Resource(group, version, plural, kind, namespaced, _CODEC, METADATA)


def with_metadata_only(resource: Resource[Any]) -> Resource[MetadataObject]:
    """The resource, of whose whole objects only the metadata is decoded: the server keeps them encoded."""
    return replace(resource, codec=_CODEC, protobuf=None)
