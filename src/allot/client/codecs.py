"""Codecs between JSON and objects, one per resource.

Events and lists are decoded in one pass, with their objects. Only unusual documents (a `null` in a typed object, an
error instead of an object) are decoded a second time.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

from allot.api.decoding import DecodeError, decode, from_builtin
from allot.api.identities import GroupVersionKind, ObjectKey
from allot.api.raw import RawObject, object_key
from allot.api.scheme import encode_object, lookup
from allot.client.errors import ApiStatusError, UnreadableAnswerError

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

T = TypeVar("T")
RawT = TypeVar("RawT", bound=RawObject)


class Unreadable(NamedTuple):
    """An object that cannot be decoded as its kind, such as one from a server of another version."""

    key: ObjectKey
    problem: str


class WatchEvent(NamedTuple, Generic[T]):
    """ADDED, MODIFIED or DELETED with the object, or BOOKMARK without one."""

    type: str
    object: T | None
    resource_version: str
    ends_initial_events: bool = False


class UnreadableEvent(WatchEvent[Any]):
    """ADDED, MODIFIED or DELETED with an object that cannot be decoded."""

    unreadable: Unreadable

    @classmethod
    def of(cls, type_: str, body: bytes, problem: object) -> UnreadableEvent:
        unreadable, version = unreadable_object(body, problem)
        event = cls(type_, None, version)
        event.unreadable = unreadable
        return event


class ListPage(NamedTuple, Generic[T]):
    """A list, or the part of it up to `continue_`."""

    items: list[T]
    resource_version: str
    continue_: str = ""
    unreadable: tuple[Unreadable, ...] = ()
    """Skipped objects of a lenient list."""


class Codec(Protocol[T]):
    """Encodes and decodes objects of one resource, and identifies them."""

    def decode(self, body: bytes) -> T: ...

    def encode(self, obj: T) -> bytes: ...

    def decode_page(self, body: bytes, *, lenient: bool = False) -> ListPage[T]:
        """A list. Raises `UnreadableAnswerError`. A lenient one skips objects that cannot be decoded."""
        ...

    def decode_event(self, line: bytes) -> WatchEvent[T]:
        """One line of a watch. Raises `ApiStatusError` for an ERROR event. The object may be unreadable."""
        ...

    def key(self, obj: T) -> ObjectKey: ...

    def resource_version(self, obj: T) -> str: ...

    def uid(self, obj: T) -> str: ...

    def in_version(self, gvk: GroupVersionKind) -> Codec[T]:
        """The codec of another version of the kind."""
        ...


class _ListMeta(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str | None = msgspec.field(name="continue", default=None)


class _RawPage(Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[dict[str, Any]] | None = None


class _RawEvent(Struct):
    type: str
    object: dict[str, Any]


class _CarefulPage(Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[Raw] | None = None


class _CarefulEvent(Struct):
    type: str
    object: Raw


class _Metadata(Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _OnlyMetadata(Struct):
    metadata: _Metadata


class _Identity(Struct, rename="camel"):
    """The identity of an object that cannot be decoded otherwise."""

    name: Any = ""
    namespace: Any = ""
    resource_version: Any = ""


class _OnlyIdentity(Struct):
    metadata: _Identity = msgspec.field(default_factory=_Identity)


class _TypedPage(Struct, Generic[T]):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[T] | None = None


class _TypedEvent(Struct, Generic[T]):
    type: str
    object: T


_BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_raw_page = msgspec.json.Decoder(_RawPage)
_raw_event = msgspec.json.Decoder(_RawEvent)
_careful_page = msgspec.json.Decoder(_CarefulPage)
_careful_event = msgspec.json.Decoder(_CarefulEvent)
_only_metadata = msgspec.json.Decoder(_OnlyMetadata)
_only_identity = msgspec.json.Decoder(_OnlyIdentity)


def unreadable_object(body: bytes, problem: object) -> tuple[Unreadable, str]:
    """The identity and version of an object that cannot be decoded, as far as they can be read."""
    try:
        identity = _only_identity.decode(body).metadata
    except _BROKEN:
        identity = _Identity()
    name, namespace, version = (
        str(value or "") for value in (identity.name, identity.namespace, identity.resource_version)
    )
    return Unreadable(ObjectKey(namespace, name), str(problem)), version


def _bookmark(metadata: _Metadata) -> WatchEvent[Any]:
    ends = (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"
    return WatchEvent("BOOKMARK", None, metadata.resource_version, ends)


def bookmark_event(body: bytes) -> WatchEvent[Any]:
    """The bookmark event with this object."""
    return _bookmark(_only_metadata.decode(body).metadata)


class RawCodec(Generic[RawT]):
    """Objects as views of JSON values. Items of lists get their kind, which lists leave out."""

    def __init__(self, cls: type[RawT], gvk: GroupVersionKind) -> None:
        self._cls = cls
        self._kind = gvk.kind
        self._api_version = str(gvk.group_version)

    def in_version(self, gvk: GroupVersionKind) -> RawCodec[RawT]:
        return RawCodec(self._cls, gvk)

    def decode(self, body: bytes) -> RawT:
        try:
            return self._cls.from_json(body)
        except DecodeError as error:
            raise UnreadableAnswerError(str(error)) from None

    def encode(self, obj: RawT) -> bytes:
        return self._typed(dict(obj.data)).to_json()

    def decode_page(self, body: bytes, *, lenient: bool = False) -> ListPage[RawT]:
        try:
            page = _raw_page.decode(body)
        except _BROKEN as error:
            raise UnreadableAnswerError(f"not a list of {self._kind}: {error}") from None
        items = [self._typed(item) for item in page.items or ()]
        return ListPage(items, page.metadata.resource_version, page.metadata.continue_ or "")

    def decode_event(self, line: bytes) -> WatchEvent[RawT]:
        try:
            event = _raw_event.decode(line)
            if event.type == "ERROR":
                raise ApiStatusError.from_status(event.object)
            metadata = event.object["metadata"]
            if event.type == "BOOKMARK":
                return _bookmark(msgspec.convert(metadata, _Metadata))
            return WatchEvent(event.type, self._cls(event.object), metadata["resourceVersion"])
        except (*_BROKEN, KeyError, TypeError) as error:
            raise UnreadableAnswerError(f"not an event of a {self._kind}: {error}") from None

    def key(self, obj: RawT) -> ObjectKey:
        return object_key(obj.data)

    def resource_version(self, obj: RawT) -> str:
        version: str = obj.data["metadata"].get("resourceVersion", "")
        return version

    def uid(self, obj: RawT) -> str:
        uid: str = obj.data["metadata"].get("uid", "")
        return uid

    def _typed(self, data: dict[str, Any]) -> RawT:
        data.setdefault("kind", self._kind)
        data.setdefault("apiVersion", self._api_version)
        return self._cls(data)


def _same(obj: T) -> T:
    return obj


class TypedCodec(Generic[T]):
    """Objects of resource.k8s.io as hub structs.

    The server has set all defaults, so that none are set here. Unknown fields are lost: use patches
    instead of updates for objects that may have them.
    """

    def __init__(self, gvk: GroupVersionKind, view: type[T] | None = None) -> None:
        """`view` is a struct with some of the fields: the others are skipped, and the codec is read-only."""
        self._gvk = gvk
        self._view = view
        _, self._version = lookup(gvk)
        if view is not None:
            self._version = self._version._replace(cls=view, to_hub=_same)  # type: ignore[arg-type]

    @cached_property
    def _page(self) -> msgspec.json.Decoder[_TypedPage[Any]]:
        cls: Any = self._version.cls
        return msgspec.json.Decoder(_TypedPage[cls], dec_hook=from_builtin)

    @cached_property
    def _event(self) -> msgspec.json.Decoder[_TypedEvent[Any]]:
        cls: Any = self._version.cls
        return msgspec.json.Decoder(_TypedEvent[cls], dec_hook=from_builtin)

    def in_version(self, gvk: GroupVersionKind) -> TypedCodec[T]:
        return TypedCodec(gvk, self._view)

    def decode(self, body: bytes) -> T:
        try:
            versioned = decode(body, self._version.cls, self._gvk.version)
        except DecodeError as error:
            raise UnreadableAnswerError(f"not a {self._gvk.kind}: {error}") from None
        hub: T = self._version.to_hub(versioned)
        return hub

    def encode(self, obj: T) -> bytes:
        if self._view is not None:
            raise TypeError(f"{self._view.__name__} is not the whole object: patch it")
        return encode_object(obj, self._gvk)

    def decode_page(self, body: bytes, *, lenient: bool = False) -> ListPage[T]:
        try:
            page = self._page.decode(body)
            items = [self._version.to_hub(item) for item in page.items or ()]
            return ListPage(items, page.metadata.resource_version, page.metadata.continue_ or "")
        except msgspec.ValidationError:
            pass  # an unusual document: decode item by item
        except _BROKEN as error:
            raise UnreadableAnswerError(f"not a list of {self._gvk.kind}: {error}") from None
        try:
            careful = _careful_page.decode(body)
        except _BROKEN as error:
            raise UnreadableAnswerError(f"not a list of {self._gvk.kind}: {error}") from None
        readable: list[T] = []
        unreadable: list[Unreadable] = []
        for item in careful.items or ():
            try:
                readable.append(self.decode(bytes(item)))
            except UnreadableAnswerError as error:
                if not lenient:
                    raise
                unreadable.append(unreadable_object(bytes(item), error)[0])
        metadata = careful.metadata
        return ListPage(
            readable, metadata.resource_version, metadata.continue_ or "", tuple(unreadable)
        )

    def decode_event(self, line: bytes) -> WatchEvent[T]:
        try:
            event = self._event.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._careful_event(line)
        if event.type in ("ERROR", "BOOKMARK"):
            return self._careful_event(line)
        hub: Any = self._version.to_hub(event.object)
        return WatchEvent(event.type, hub, hub.metadata.resource_version)

    def _careful_event(self, line: bytes) -> WatchEvent[T]:
        try:
            event = _careful_event.decode(line)
            body = bytes(event.object)
            if event.type == "ERROR":
                raise ApiStatusError.from_status(msgspec.json.decode(body))
            if event.type == "BOOKMARK":
                return bookmark_event(body)
        except _BROKEN as error:
            raise UnreadableAnswerError(f"not an event of a {self._gvk.kind}: {error}") from None
        try:
            hub: Any = self.decode(body)
        except UnreadableAnswerError as error:
            return UnreadableEvent.of(event.type, body, error)
        return WatchEvent(event.type, hub, hub.metadata.resource_version)

    def key(self, obj: T) -> ObjectKey:
        key: ObjectKey = obj.key  # type: ignore[attr-defined]
        return key

    def resource_version(self, obj: T) -> str:
        version: str = obj.metadata.resource_version  # type: ignore[attr-defined]
        return version

    def uid(self, obj: T) -> str:
        uid: str = obj.metadata.uid  # type: ignore[attr-defined]
        return uid
