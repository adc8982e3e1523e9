"""An object at one revision, with its decoded and encoded representations, which are cached."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from allot.api.base import replace
from allot.apiserver.watch_cache.codec import Codec
from allot.apiserver.watch_cache.codecs import METADATA_HEAD
from allot.apiserver.watch_cache.representations import DECODED_FACTOR, REPRESENTATIONS
from allot.storage.interface import Entry

_DECODED: Final = "decoded"
_PROTOBUF: Final = "protobuf"
_CONVERTED: Final = "converted"


class StoredObject:
    """Shared by all readers: gets, lists, and watches of the change that stored it."""

    __slots__ = ("_bodies", "_object", "_written", "codec", "entry", "key", "revision")

    def __init__(self, entry: Entry, codec: Codec, written: Any = None) -> None:
        """`written` is what was encoded, of an object that is in no cache and not counted as kept."""
        self.entry = entry
        self.key = entry.key
        self.revision = entry.revision
        self.codec = codec
        self._object: Any = None
        self._written = written
        self._bodies: dict[Hashable, bytes] | None = None

    @property
    def object(self) -> Any:
        """The object with its resourceVersion; decoded when it is first asked for."""
        found = self._object
        if found is None:
            written = self._written  # another thread may evict it
            is_kept = written is not None
            obj = written if is_kept else self._decoded()
            metadata = replace(obj.metadata, resource_version=str(self.entry.revision))
            if is_kept:
                found = self.codec.as_stored(obj, metadata)
            else:
                found = self.codec.with_metadata(obj, metadata)
            self._object, self._written = found, None
            if not is_kept:
                REPRESENTATIONS.keep(self, _DECODED, DECODED_FACTOR * len(self.entry.value))
        return found

    @property
    def kept_content(self) -> Any:
        """The object, perhaps without its resourceVersion, as long as it is kept; None if it would have to be decoded."""
        written = self._written  # another thread may evict it
        return self._object if written is None else written

    @property
    def is_decoded(self) -> bool:
        """Whether the object is kept, so that it need not be decoded."""
        return self._object is not None or self._written is not None

    @property
    def decoding_work(self) -> int:
        """How much work it is to look into the object, in bytes of JSON."""
        return 0 if self.is_decoded else len(self.entry.value)

    def _decoded(self) -> Any:
        return self.codec.decode_stored(self.entry.value)

    def adopt(self, obj: Any) -> None:
        """Keep the object that was encoded, so that it is not decoded again."""
        if self._object is None:
            self._written = obj
            REPRESENTATIONS.keep(self, _DECODED, DECODED_FACTOR * len(self.entry.value))

    def body(self, codec: Codec, version: str) -> bytes:
        """JSON in a version, without kind and apiVersion, as a list item."""
        key = (codec, version)
        bodies = self._bodies
        body = bodies.get(key) if bodies is not None else None
        if body is None:
            body = with_revision(self.without_revision(codec, version), self.revision)
            self._keep(key, body)
        return body

    def message(self, codec: Codec, version: str) -> bytes:
        """The protobuf message in a version, without an envelope, as it stands in lists."""
        key = (codec, version, _PROTOBUF)
        bodies = self._bodies
        message = bodies.get(key) if bodies is not None else None
        if message is None:
            message = self.message_at(self.revision, codec, version)
            self._keep(key, message)
        return message

    def has_message(self, codec: Codec, version: str) -> bool:
        """Whether the message is kept."""
        return self._bodies is not None and (codec, version, _PROTOBUF) in self._bodies

    def message_at(self, revision: int, codec: Codec, version: str) -> bytes:
        """The protobuf message with a resourceVersion."""
        if codec is self.codec and version == codec.storage_version:
            return codec.stored_to_protobuf(self.entry.value, str(revision or ""))
        return codec.encode_protobuf(self.at(revision), version)

    def at(self, revision: int) -> Any:
        """The object with a resourceVersion; with none if the revision is 0, as in a dry run."""
        if revision and revision == self.revision:
            return self.object
        metadata = replace(self.object.metadata, resource_version=str(revision or ""))
        return self.codec.with_metadata(self.object, metadata)

    def _keep(self, form: Hashable, body: bytes) -> None:
        if self._bodies is None:
            self._bodies = {}
        self._bodies[form] = body
        REPRESENTATIONS.keep(self, form, len(body))

    def without_revision(self, codec: Codec, version: str) -> bytes:
        if codec is self.codec and version == codec.storage_version:
            return self.entry.value
        written = self._written  # another thread may evict it
        kept = None if written is None else self.codec.as_stored(written, written.metadata)
        obj = self.object if kept is None else kept
        return codec.encode(obj, version)

    def converted(self, version: str) -> bytes | None:
        """The object as a webhook converted it to a version, if that is kept."""
        return self._bodies.get((_CONVERTED, version)) if self._bodies is not None else None

    def keep_converted(self, version: str, body: bytes) -> None:
        self._keep((_CONVERTED, version), body)

    def forget(self, form: Hashable) -> None:
        if form == _DECODED:
            self._object = self._written = None
        elif self._bodies is not None:
            self._bodies.pop(form, None)


_START: Final = len(METADATA_HEAD)
_METADATA: Final = METADATA_HEAD[1:]
_UID: Final = b'"uid":"'
_UID_LENGTH: Final = len(_UID)


def with_revision(body: bytes, revision: int, head: bytes = b"{", tail: bytes = b"") -> bytes:
    """Stored JSON with a resourceVersion in its metadata, after the uid; a dry run has none.

    It begins with `head` in place of its brace, and `tail` follows it: long bodies are copied once.
    """
    if not revision:
        return b"%b%b%b" % (head, body[1:], tail)
    at = body.find(_UID, _START)
    # Before it are name, generateName and namespace: strings without quotes and braces.
    if at < 0 or b"{" in body[_START:at]:
        rest = body[_START:]
        return b'%b%b"resourceVersion":"%d",%b%b' % (head, _METADATA, revision, rest, tail)
    end = body.index(b'"', at + _UID_LENGTH) + 1
    return b'%b%b,"resourceVersion":"%d"%b%b' % (head, body[1:end], revision, body[end:], tail)


def with_type(body: bytes, kind: str, api_version: str) -> bytes:
    """JSON of a list item as a document of its own."""
    return type_head(kind, api_version) + body[1:]


def type_head(kind: str, api_version: str) -> bytes:
    """How a JSON document of this type begins."""
    return b'{"kind":"%b","apiVersion":"%b",' % (kind.encode(), api_version.encode())
