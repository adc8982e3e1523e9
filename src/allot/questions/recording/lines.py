"""The format of recordings: JSON lines.

    {"apiVersion": "allot.dev/v1", "kind": "ClusterRecording", "version": 1, ...}   the header
    {"at": TIME, "base": 2, "unread": {...}}           a snapshot of so many objects, which follow
    {"put": OBJECT}
    {"put": OBJECT}
    {"at": TIME, "put": OBJECT}                        an object was created or changed
    {"at": TIME, "delete": {"apiVersion": ..., "kind": ..., "metadata": {...}}}
    {"at": TIME, "mark": true}                         nothing has changed up to here
    {"at": TIME, "resumed": TIME, "unread": {...}}     nothing is known of the time between the two

Times never go back. Header and snapshot are written as a whole; of the lines after them only the last one can be torn.
A file of a later version may mean something else by the same lines, and is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from allot.api.identities import ObjectKey
from allot.client.resources import Resource
from allot.questions.recording.detection import KIND
from allot.questions.scheduling_fields import SCHEDULING_FIELDS

API_VERSION: Final = "allot.dev/v1"
VERSION: Final = 1
_RESOURCES: Final = {
    (resource.api_version, resource.kind): resource for resource in SCHEDULING_FIELDS
}


class RecordingError(Exception):
    """The file cannot be read as a recording, or not be written; the message says why."""


class Header(msgspec.Struct, frozen=True, rename="camel"):
    """What is true of the whole recording."""

    api_version: str = API_VERSION
    kind: str = KIND
    version: int = VERSION
    cluster: str = ""
    """Tells recordings of different clusters apart; a hash."""
    server_version: str = ""
    rules: str = ""
    feature_gates: dict[str, bool] = {}
    anonymized: bool = False


class Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class Reference(msgspec.Struct, frozen=True, rename="camel"):
    """The object that a line is about."""

    api_version: str
    kind: str
    metadata: Metadata

    @property
    def key(self) -> RecordedKey | None:
        """None for kinds that this version of allot does not know."""
        resource = _RESOURCES.get((self.api_version, self.kind))
        if resource is None:
            return None
        return RecordedKey(resource, ObjectKey(self.metadata.namespace, self.metadata.name))


class RecordedKey(NamedTuple):
    """An object of a recording."""

    resource: Resource[Any]
    key: ObjectKey

    @property
    def reference(self) -> Reference:
        namespace, name = self.key
        resource = self.resource
        return Reference(resource.api_version, resource.kind, Metadata(name, namespace))

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.key}"


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """Any line after the header."""

    at: datetime | None = None
    base: int | None = None
    put: Reference | None = None
    """Of the object, only what it is."""
    delete: Reference | None = None
    mark: bool = False
    resumed: datetime | None = None
    unread: dict[str, str] | None = None
    """Resources that could not be read since then, and why."""

    @property
    def key(self) -> RecordedKey | None:
        reference = self.put or self.delete
        return reference.key if reference is not None else None


class _Put(msgspec.Struct):
    put: msgspec.Raw


_lines: Final = msgspec.json.Decoder(Line)
_puts: Final = msgspec.json.Decoder(_Put)
_headers: Final = msgspec.json.Decoder(Header)
_encoder: Final = msgspec.json.Encoder()


def read_header(line: bytes, source: str) -> Header:
    """`RecordingError` if it is not one, or one of a later version."""
    try:
        header = _headers.decode(line)
    except msgspec.DecodeError:
        raise RecordingError(f"{source} is not a recording; `allot record` writes them") from None
    if header.kind != KIND:
        raise RecordingError(f"{source} is not a recording; `allot record` writes them")
    if header.version > VERSION:
        raise RecordingError(
            f"{source} was recorded by a newer version of allot (format {header.version}, this one"
            f" reads up to {VERSION}); use that version"
        )
    return header


def read_line(line: bytes | memoryview) -> Line:
    """`ValueError` if it is not one."""
    return _lines.decode(line)


def object_in(line: bytes | memoryview) -> bytes:
    """The object of a line with `put`."""
    return bytes(_puts.decode(line).put)


def encode_header(header: Header) -> bytes:
    return _encoder.encode(header) + b"\n"


def encode_line(line: Line) -> bytes:
    return _encoder.encode(line) + b"\n"


def encode_put(body: bytes, at: datetime | None = None) -> bytes:
    """The line of an object that is encoded already; without a time, one of the snapshot."""
    time = b"" if at is None else b'"at":%b,' % _encoder.encode(at)
    return b'{%b"put":%b}\n' % (time, body)


def encode_object(data: Mapping[str, Any]) -> bytes:
    return _encoder.encode(data)
