"""Kubernetes' protobuf bodies: objects in a `runtime.Unknown` envelope, and the frames of a watch.

An envelope is `k8s\\0` and a message with the type and the object's own message as bytes. In a watch each
event is a frame with a length prefix; the object in it has its own envelope.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import Struct

from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.protobuf.reading import read
from allot.api.protobuf.scalars import fields_at
from allot.api.protobuf.schema import message_of
from allot.api.protobuf.targets import Target
from allot.api.protobuf.wire import ProtobufError, delimited, skip, too_short, varint
from allot.api.protobuf.writing import write

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\0"
MAX_FRAME: Final = 64 << 20
"""The longest event of a watch that is read."""
MAX_KINDS: Final = 1024
"""Kinds whose messages are known without looking; clients may name meta's kinds in any group."""


class Envelope(NamedTuple):
    """The type of a body, and the object's message."""

    api_version: str
    kind: str
    content: bytes

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(*GroupVersion.parse(self.api_version), self.kind)


def in_envelope(content: bytes, api_version: str, kind: str) -> bytes:
    """A message as the body of a request or an answer."""
    type_meta = delimited(1, api_version.encode()) + delimited(2, kind.encode())
    return b"%b%b%b\x1a\0\x22\0" % (MAGIC, delimited(1, type_meta), delimited(2, content))


def open_envelope(body: bytes) -> Envelope:
    """The envelope of a body; `ProtobufError` if it has none."""
    if not body:
        raise ProtobufError("empty data")
    if body == MAGIC:
        raise ProtobufError("empty body")
    if not body.startswith(MAGIC):
        raise ProtobufError(
            f"provided data does not appear to be a protobuf message, expected prefix {_listed(MAGIC)}"
        )
    try:
        fields = fields_at(body, len(MAGIC), len(body))
        type_fields = fields_at(body, *_place(fields, 1))
        api_version, kind = (body[slice(*_place(type_fields, number))] for number in (1, 2))
        content = body[slice(*_place(fields, 2))]
        return Envelope(api_version.decode(), kind.decode(), content)
    except IndexError:
        raise too_short() from None
    except UnicodeDecodeError:
        raise ProtobufError("string field contains invalid UTF-8") from None


def _listed(data: bytes) -> str:
    """Bytes as Go prints them."""
    return f"[{' '.join(map(str, data))}]"


def _place(fields: dict[int, Any], number: int) -> tuple[int, int]:
    place = fields.get(number, (0, 0))
    if isinstance(place, int):
        raise ProtobufError(f"proto: wrong wireType = 0 for field {number}")
    start, end = place
    return start, end


@lru_cache(MAX_KINDS)
def has_protobuf(gvk: GroupVersionKind) -> bool:
    """Whether a kind can be written as protobuf. Custom resources cannot."""
    return message_of(gvk) is not None


@lru_cache(MAX_KINDS)
def target_of(gvk: GroupVersionKind, cls: type[Struct] | None = None) -> Target:
    """The message of a kind, for a struct or plain JSON values; `ProtobufError` if it has none."""
    found = message_of(gvk)
    if found is None:
        raise ProtobufError(
            f'no protobuf message is known for kind "{gvk.kind}" in version "{gvk.group_version}"'
        )
    return Target(found.name, cls)


def encode_document(document: dict[str, Any], gvk: GroupVersionKind) -> bytes:
    """JSON values of a kind as a whole body."""
    content = write(document, target_of(gvk))
    return in_envelope(content, str(gvk.group_version), gvk.kind)


def decode_document(body: bytes, expected: GroupVersionKind | None = None) -> dict[str, Any]:
    """A whole body as JSON values, with kind and apiVersion; `expected` is the type if the envelope has none."""
    envelope = open_envelope(body)
    gvk = expected if expected is not None and not envelope.kind else envelope.gvk
    values = read(envelope.content, target_of(gvk))
    return {"kind": gvk.kind, "apiVersion": str(gvk.group_version), **values}


def items_of_list(content: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """The metadata of a list and the messages of its items, whatever their kind."""
    metadata: dict[str, Any] = {}
    items: list[bytes] = []
    start, end = 0, len(content)
    try:
        while start < end:
            tag, start = varint(content, start)
            if tag not in (10, 18):
                start = skip(content, start, tag)
                continue
            length, start = varint(content, start)
            part = content[start : start + length]
            start += length
            if tag == 18:
                items.append(part)
            else:
                metadata = read(part, _LIST_META)
    except IndexError:
        raise too_short() from None
    if start > end:
        raise too_short()
    return metadata, items


_LIST_META: Final = Target("meta.v1.ListMeta")


# --- watches ---


def watch_event(type_: str, body: bytes) -> bytes:
    """An event of a watch as a frame; `body` is the object in its envelope."""
    event = delimited(1, type_.encode()) + delimited(2, delimited(1, body))
    return len(event).to_bytes(4, "big") + event


class WatchEvent(NamedTuple):
    type: str
    body: bytes
    """The object in its envelope."""


class FrameReader:
    """Splits the bytes of a watch into events, for chunks of any size."""

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[WatchEvent]:
        """The events that are complete with this chunk."""
        self._rest += data
        start = 0
        while len(self._rest) >= start + 4:
            length = int.from_bytes(self._rest[start : start + 4], "big")
            if length > self._max_frame:
                raise ProtobufError(f"an event of {length} bytes is too long")
            if len(self._rest) < start + 4 + length:
                break
            frame = bytes(self._rest[start + 4 : start + 4 + length])
            start += 4 + length
            yield _event(frame)
        del self._rest[:start]


def _event(frame: bytes) -> WatchEvent:
    try:
        fields = fields_at(frame, 0, len(frame))
        type_ = frame[slice(*_place(fields, 1))].decode()
        extension = fields_at(frame, *_place(fields, 2))
        return WatchEvent(type_, frame[slice(*_place(extension, 1))])
    except IndexError:
        raise too_short() from None
    except UnicodeDecodeError:
        raise ProtobufError("string field contains invalid UTF-8") from None
