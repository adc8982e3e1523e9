"""Codecs between JSON and objects, one per resource.

Events and lists are decoded in one pass, with their objects. Only unusual documents (a `null` in a typed object, an
error instead of an object) are decoded a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import force_setattr

from allot.api.decoding import DecodeError, decode, from_builtin
from allot.api.identities import GroupVersionKind, ObjectKey
from allot.api.raw import RawObject
from allot.api.scheme import encode_object, lookup
from allot.client.errors import ApiStatusError, UnreadableAnswerError

WITHOUT_OBJECT: Final = ("ERROR", "BOOKMARK")
"""Types of events that are not about an object of the kind."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

T = TypeVar("T")
RawT = TypeVar("RawT", bound=RawObject)


class Unreadable(NamedTuple):
    """An object that cannot be decoded as its kind, such as one from a server of another version."""

    key: ObjectKey
    problem: str


class WatchEvent(Struct, Generic[T], frozen=True):
    """ADDED, MODIFIED or DELETED with the object, or BOOKMARK without one."""

    type: str
    object: T | None
    resource_version: str
    ends_initial_events: bool = False


class UnreadableEvent(WatchEvent[Any], frozen=True, kw_only=True):
    """ADDED, MODIFIED or DELETED with an object that cannot be decoded."""

    unreadable: Unreadable

    @classmethod
    def of(cls, type_: str, unreadable: Unreadable, version: str) -> UnreadableEvent:
        return cls(type_, None, version, unreadable=unreadable)


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

    def decode_bare_event(self, line: bytes) -> WatchEvent[T]:
        """The same for readers who do not look at managedFields: without these."""
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


class TypedPage(Struct, Generic[T]):
    """A list; of `Raw` if its items are not decoded."""

    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[T] | None = None


class TypedEvent(Struct, Generic[T]):
    """A line of a watch; of `Raw` if its object is not decoded."""

    type: str
    object: T


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


BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_raw_page = msgspec.json.Decoder(_RawPage)
_raw_event = msgspec.json.Decoder(_RawEvent)
_careful_page = msgspec.json.Decoder(TypedPage[Raw])
_careful_event = msgspec.json.Decoder(TypedEvent[Raw])
_only_metadata = msgspec.json.Decoder(_OnlyMetadata)
_only_identity = msgspec.json.Decoder(_OnlyIdentity)


def unreadable_object(body: bytes, problem: object) -> tuple[Unreadable, str]:
    """The identity and version of an object that cannot be decoded, as far as they can be read."""
    try:
        identity = _only_identity.decode(body).metadata
    except BROKEN:
        identity = _Identity()
    name, namespace, version = (
        str(value or "") for value in (identity.name, identity.namespace, identity.resource_version)
    )
    return Unreadable(ObjectKey(namespace, name), str(problem)), version


def bookmark_event(resource_version: str, annotations: Mapping[str, str] | None) -> WatchEvent[Any]:
    """The bookmark whose object has this metadata."""
    ends = (annotations or {}).get(INITIAL_EVENTS_END) == "true"
    return WatchEvent("BOOKMARK", None, resource_version, ends)


def decode_item_by_item(
    body: bytes, decode_item: Callable[[bytes], T], kind: str, *, lenient: bool
) -> ListPage[T]:
    """A list with items that cannot be decoded. A lenient one skips them."""
    try:
        page = _careful_page.decode(body)
    except BROKEN as error:
        raise UnreadableAnswerError(f"not a list of {kind}: {error}") from None
    readable: list[T] = []
    unreadable: list[Unreadable] = []
    for item in page.items or ():
        try:
            readable.append(decode_item(bytes(item)))
        except UnreadableAnswerError as error:
            if not lenient:
                raise
            unreadable.append(unreadable_object(bytes(item), error)[0])
    metadata = page.metadata
    return ListPage(
        readable, metadata.resource_version, metadata.continue_ or "", tuple(unreadable)
    )


def decode_unusual_event(
    line: bytes, decode_object: Callable[[bytes], Any], kind: str
) -> WatchEvent[Any]:
    """An event that is an error or a bookmark, or whose object cannot be decoded in one pass."""
    try:
        event = _careful_event.decode(line)
        body = bytes(event.object)
        if event.type == "ERROR":
            raise ApiStatusError.from_status(msgspec.json.decode(body))
        if event.type == "BOOKMARK":
            metadata = _only_metadata.decode(body).metadata
            return bookmark_event(metadata.resource_version, metadata.annotations)
    except BROKEN as error:
        raise UnreadableAnswerError(f"not an event of a {kind}: {error}") from None
    try:
        obj = decode_object(body)
    except UnreadableAnswerError as error:
        return UnreadableEvent.of(event.type, *unreadable_object(body, error))
    return WatchEvent(event.type, obj, obj.metadata.resource_version)


def strip_managed_fields(obj: object) -> None:
    """Remove managedFields in place, from an object that was just decoded and is not shared yet."""
    if isinstance(obj, RawObject):
        metadata: Any = obj.data.get("metadata")
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
    else:
        metadata = getattr(obj, "metadata", None)
        if getattr(metadata, "managed_fields", ()):
            force_setattr(metadata, "managed_fields", ())


def event_without_managed_fields(event: WatchEvent[T]) -> WatchEvent[T]:
    """The same event. They are removed from its object in place."""
    strip_managed_fields(event.object)
    return event


_MANAGED_FIELDS: Final = b',"managedFields":['
_MANAGED_FIELDS_SIZE: Final = len(_MANAGED_FIELDS)


def line_without_managed_fields(line: bytes) -> bytes:
    """An event without the managedFields of its object, of a kind whose spec follows its metadata.

    They are left in if they do not come last in the metadata, if there may be a list or bracket in them, or if the spec
    or status comes first: what drivers and users put there may look like metadata. Otherwise the first bracket that
    closes ends them: one with a key after it is not part of a string.
    """
    find = line.find
    start = find(_MANAGED_FIELDS)
    end = find(b"]", start)
    if (
        start < 0
        or not line.startswith(b']},"spec":', end)
        or find(b"[", start + _MANAGED_FIELDS_SIZE, end) >= 0
        or find(b'"spec":', 0, start) >= 0
        or find(b'"status":', 0, start) >= 0
    ):
        return line
    return line[:start] + line[end + 1 :]


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
        identity = {"kind": self._kind, "apiVersion": self._api_version}
        return msgspec.json.encode({**identity, **obj.data})

    def decode_page(self, body: bytes, *, lenient: bool = False) -> ListPage[RawT]:
        try:
            page = _raw_page.decode(body)
        except BROKEN as error:
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
                read = msgspec.convert(metadata, _Metadata)
                return bookmark_event(read.resource_version, read.annotations)
            version = metadata["resourceVersion"]
            obj = self._cls(event.object)
            obj.key = ObjectKey(metadata.get("namespace") or "", metadata.get("name") or "")
            return WatchEvent(event.type, obj, version)
        except (*BROKEN, KeyError, TypeError) as error:
            raise UnreadableAnswerError(f"not an event of a {self._kind}: {error}") from None

    def decode_bare_event(self, line: bytes) -> WatchEvent[RawT]:
        return event_without_managed_fields(self.decode_event(line))

    def key(self, obj: RawT) -> ObjectKey:
        return obj.key

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
    def _page(self) -> msgspec.json.Decoder[TypedPage[Any]]:
        cls: Any = self._version.cls
        return msgspec.json.Decoder(TypedPage[cls], dec_hook=from_builtin)

    @cached_property
    def _event(self) -> msgspec.json.Decoder[TypedEvent[Any]]:
        cls: Any = self._version.cls
        return msgspec.json.Decoder(TypedEvent[cls], dec_hook=from_builtin)

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
        except BROKEN as error:
            raise UnreadableAnswerError(f"not a list of {self._gvk.kind}: {error}") from None
        return decode_item_by_item(body, self.decode, self._gvk.kind, lenient=lenient)

    def decode_event(self, line: bytes) -> WatchEvent[T]:
        try:
            event = self._event.decode(line)
        except BROKEN:
            return decode_unusual_event(line, self.decode, self._gvk.kind)
        if event.type in WITHOUT_OBJECT:
            return decode_unusual_event(line, self.decode, self._gvk.kind)
        hub: Any = self._version.to_hub(event.object)
        return WatchEvent(event.type, hub, hub.metadata.resource_version)

    def decode_bare_event(self, line: bytes) -> WatchEvent[T]:
        bare = line_without_managed_fields(line)
        event = self.decode_event(bare)
        return event if bare is not line else event_without_managed_fields(event)

    def key(self, obj: T) -> ObjectKey:
        key: ObjectKey = obj.key  # type: ignore[attr-defined]
        return key

    def resource_version(self, obj: T) -> str:
        version: str = obj.metadata.resource_version  # type: ignore[attr-defined]
        return version

    def uid(self, obj: T) -> str:
        uid: str = obj.metadata.uid  # type: ignore[attr-defined]
        return uid
