"""An object as it was stored at one revision, and everything that is made from it once and kept."""

from __future__ import annotations

from typing import Any

from allot.api.base import replace
from allot.apiserver.codecs import METADATA_HEAD, Codec
from allot.storage.interface import Entry


class StoredObject:
    """Shared by all who read it: gets, lists and every watcher of the event that brought it."""

    __slots__ = ("_bodies", "_object", "codec", "entry")

    def __init__(self, entry: Entry, codec: Codec, obj: Any = None) -> None:
        self.entry = entry
        self.codec = codec
        self._object = obj
        self._bodies: dict[tuple[Codec, str], bytes] = {}

    @property
    def key(self) -> str:
        return self.entry.key

    @property
    def revision(self) -> int:
        return self.entry.revision

    @property
    def object(self) -> Any:
        """The object with its resourceVersion; decoded when it is first asked for."""
        if self._object is None:
            obj = self.codec.decode_stored(self.entry.value)
            version = str(self.entry.revision)
            metadata = replace(obj.metadata, resource_version=version)
            self._object = self.codec.with_metadata(obj, metadata)
        return self._object

    def body(self, codec: Codec, version: str) -> bytes:
        """JSON in a version, without kind and apiVersion, as it stands in lists."""
        key = (codec, version)
        body = self._bodies.get(key)
        if body is None:
            body = self._bodies[key] = with_revision(
                self.without_revision(codec, version), self.revision
            )
        return body

    def without_revision(self, codec: Codec, version: str) -> bytes:
        if codec is self.codec and version == codec.storage_version:
            return self.entry.value
        return codec.encode(self.object, version)


def with_revision(body: bytes, revision: int) -> bytes:
    """Stored JSON with a resourceVersion in its metadata; a dry run has none."""
    if not revision:
        return body
    return b'%b"resourceVersion":"%d",%b' % (METADATA_HEAD, revision, body[len(METADATA_HEAD) :])


def with_type(body: bytes, kind: str, api_version: str) -> bytes:
    """JSON of a list item as a document of its own."""
    return b'{"kind":"%b","apiVersion":"%b",%b' % (kind.encode(), api_version.encode(), body[1:])
