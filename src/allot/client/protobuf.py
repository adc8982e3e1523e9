"""Objects in protobuf, for resources of which JSON does not carry everything.

A claim's opaque parameters are bytes to kube-apiserver, and a claim whose parameters differ in a single byte is
another claim. In JSON it shows them without their spaces and with `<`, `>` and `&` escaped, so that a claim that was
read as JSON can often not be written back. In protobuf they come as they are.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from allot.api.decoding import DecodeError
from allot.api.identities import GroupVersionKind, ObjectKey
from allot.api.protobuf.envelope import (
    MAGIC,
    MEDIA_TYPE,
    decode_document,
    in_envelope,
    items_of_list,
    open_envelope,
    target_of,
)
from allot.api.protobuf.envelope import WatchEvent as Frame
from allot.api.protobuf.reading import read
from allot.api.protobuf.targets import Target
from allot.api.scheme import encode_protobuf, lookup
from allot.client.codecs import (
    ListPage,
    Unreadable,
    UnreadableEvent,
    WatchEvent,
    bookmark_event,
    event_without_managed_fields,
)
from allot.client.errors import ApiStatusError, UnreadableAnswerError
from allot.client.transport import JSON

T = TypeVar("T")

PROTOBUF: Final = MEDIA_TYPE
ACCEPT: Final = {"Accept": f"{PROTOBUF},{JSON}"}
"""Asks for protobuf, and for JSON from servers that do not have it."""
_METADATA: Final = Target("meta.v1.PartialObjectMetadata")
"""All kinds have their metadata in the same field."""


def is_protobuf(body: bytes) -> bool:
    return body.startswith(MAGIC)


class ProtobufCodec(Generic[T]):
    """Objects of resource.k8s.io as hub structs."""

    def __init__(self, gvk: GroupVersionKind) -> None:
        self._gvk = gvk
        _, self._version = lookup(gvk)

    def in_version(self, gvk: GroupVersionKind) -> ProtobufCodec[T]:
        return ProtobufCodec(gvk)

    def decode(self, body: bytes) -> T:
        try:
            return self._decode(open_envelope(body).content)
        except DecodeError as error:
            raise UnreadableAnswerError(f"not a {self._gvk.kind}: {error}") from None

    def encode(self, obj: T) -> bytes:
        content = encode_protobuf(obj, self._gvk)
        return in_envelope(content, str(self._gvk.group_version), self._gvk.kind)

    def decode_page(self, body: bytes, *, lenient: bool = False) -> ListPage[T]:
        """A list; a lenient one leaves out objects that cannot be read."""
        try:
            metadata, items = items_of_list(open_envelope(body).content)
        except DecodeError as error:
            raise UnreadableAnswerError(f"not a list of {self._gvk.kind}: {error}") from None
        readable: list[T] = []
        unreadable: list[Unreadable] = []
        for item in items:
            try:
                readable.append(self._decode(item))
            except DecodeError as error:
                if not lenient:
                    raise UnreadableAnswerError(f"not a {self._gvk.kind}: {error}") from None
                unreadable.append(_unreadable(item, error)[0])
        return ListPage(
            readable,
            metadata.get("resourceVersion", ""),
            metadata.get("continue", ""),
            tuple(unreadable),
        )

    def decode_event(self, frame: Frame) -> WatchEvent[T]:
        """One event of a watch; `ApiStatusError` if it reports an error. The object may be unreadable."""
        try:
            if frame.type == "ERROR":
                raise ApiStatusError.from_status(decode_document(frame.body))
            content = open_envelope(frame.body).content
            if frame.type == "BOOKMARK":
                metadata = read(content, _METADATA)["metadata"]
                return bookmark_event(
                    metadata.get("resourceVersion", ""), metadata.get("annotations")
                )
        except DecodeError as error:
            raise UnreadableAnswerError(f"not an event of a {self._gvk.kind}: {error}") from None
        try:
            hub: Any = self._decode(content)
        except DecodeError as error:
            return UnreadableEvent.of(frame.type, *_unreadable(content, error))
        return WatchEvent(frame.type, hub, hub.metadata.resource_version)

    def decode_bare_event(self, frame: Frame) -> WatchEvent[T]:
        """The same without managedFields."""
        return event_without_managed_fields(self.decode_event(frame))

    def _decode(self, content: bytes) -> T:
        hub: T = self._version.to_hub(read(content, target_of(self._gvk, self._version.cls)))
        return hub


def _unreadable(content: bytes, problem: object) -> tuple[Unreadable, str]:
    """Which object it is, as far as that can be told, and its version."""
    try:
        metadata = read(content, _METADATA)["metadata"]
    except DecodeError:
        metadata = {}
    key = ObjectKey(metadata.get("namespace", ""), metadata.get("name", ""))
    return Unreadable(key, str(problem)), metadata.get("resourceVersion", "")
