"""Custom resources whose versions a webhook converts: what is stored, in the version of a request, and the other way.

    read:   stored in v1 ──► webhook ──► pruned by the schema of v2 ──► shown in v2
    write:  sent in v2, validated in v2 ──► webhook ──► pruned by the schema of v1 ──► stored in v1

Objects that are in the wanted version already are not sent. What was converted is kept with the stored object, within
the memory budget of `representations`, so that every watch does not ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from allot.api.base import replace
from allot.api.raw import RawObject
from allot.apiserver.kinds.custom_versions import CustomKind
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import Pacer, Workers
from allot.apiserver.watch_cache.codecs import storage_codec
from allot.apiserver.watch_cache.custom_codec import CustomCodec
from allot.apiserver.watch_cache.object_changes import ObjectChange
from allot.apiserver.watch_cache.stored_objects import StoredObject, with_type
from allot.storage.interface import Entry
from allot.validation.structural.pruning import prune
from allot.validation.structural.schemas import Schema

Document = dict[str, Any]

CALL_BYTES: Final = 512 * 1024
"""Objects are sent together up to this size: a list mostly is one call."""


class ConversionWebhooks(Protocol):
    """Calls the conversion webhooks of definitions."""

    async def convert(
        self, kind: CustomKind, documents: Sequence[bytes], version: str
    ) -> list[Document]:
        """The documents in another version; raises `ApiError`."""


def is_converted(resource: Resource) -> bool:
    """Whether a webhook converts objects of the resource between versions."""
    return resource.custom is not None and resource.custom.kind.has_webhook


class ConvertedObject(StoredObject):
    """A stored object in another version than that in which it is stored."""

    __slots__ = ()

    def _decoded(self) -> RawObject:
        assert isinstance(self.codec, CustomCodec)
        return self.codec.decode_converted(self.entry.value)


class Converter:
    """Converts objects of one API server. Resources without a webhook are left as they are."""

    def __init__(self, webhooks: ConversionWebhooks, workers: Workers) -> None:
        self._webhooks = webhooks
        self._workers = workers

    # --- reading ---

    async def shown(self, resource: Resource, stored: StoredObject) -> StoredObject:
        """A stored object in the version of the resource."""
        if not is_converted(resource):
            return stored
        return (await self.all_shown(resource, [stored]))[0]

    async def all_shown(
        self, resource: Resource, objects: Sequence[StoredObject]
    ) -> Sequence[StoredObject]:
        """Stored objects in the version of the resource: all that have to be converted in one call."""
        if not is_converted(resource):
            return objects
        version = _version_of(resource)
        wanted = _api_version(resource, version)
        bodies: dict[int, bytes] = {}
        others: list[StoredObject] = []
        pacer = Pacer()
        async for stored in pacer.each(objects):
            if stored.object.data["apiVersion"] == wanted:
                continue
            known = stored.converted(version)
            if known is None:
                others.append(stored)
            else:
                bodies[id(stored)] = known
        made = await self._converted(resource, [each.object for each in others], version)
        codec = _codec_of(resource)
        async for stored, obj in pacer.each(zip(others, made, strict=True)):
            body = bodies[id(stored)] = codec.encode_converted(obj, version)
            stored.keep_converted(version, body)
        return [
            _in_version(stored, bodies[id(stored)]) if id(stored) in bodies else stored
            for stored in objects
        ]

    async def changes_shown(
        self,
        resource: Resource,
        changes: Iterable[ObjectChange],
        states_of: Callable[[ObjectChange], Iterable[StoredObject | None]],
    ) -> list[ObjectChange]:
        """Changes of stored objects, with those of their states that are asked for in the version of the resource."""
        listed = list(changes)
        states = [state for change in listed for state in states_of(change) if state is not None]
        distinct = list({id(state): state for state in states}.values())
        shown = await self.all_shown(resource, distinct)
        by_state = {id(state): each for state, each in zip(distinct, shown, strict=True)}
        return [
            ObjectChange(
                change.revision,
                by_state.get(id(change.old), change.old),
                by_state.get(id(change.new), change.new),
            )
            for change in listed
        ]

    # --- writing ---

    async def to_store(self, resource: Resource, obj: Any) -> Any:
        """An object of the resource in the version in which it is stored."""
        custom = resource.custom
        if custom is None or not custom.kind.has_webhook:
            return obj
        return await self.in_version(resource, obj, custom.kind.storage_version)

    async def in_version(self, resource: Resource, obj: RawObject, version: str) -> RawObject:
        """An object of a resource with a webhook in another version."""
        if obj.data["apiVersion"] == _api_version(resource, version):
            return obj
        (made,) = await self._converted(resource, [obj], version)
        revision = obj.metadata.resource_version
        return made.with_metadata(replace(made.metadata, resource_version=revision))

    # --- both ---

    async def _converted(
        self, resource: Resource, objects: Sequence[RawObject], version: str
    ) -> list[RawObject]:
        assert resource.custom is not None
        kind, codec = resource.custom.kind, _codec_of(resource)
        made: list[RawObject] = []
        encoded = [_document(each, codec) async for each in Pacer().each(objects)]
        for documents in _calls(encoded):
            found = await self._webhooks.convert(kind, documents, version)
            prune_all = partial(_pruned, found, kind.versions[version].schema)
            made += await self._workers.run(sum(map(len, documents)), prune_all)
        return made


def _pruned(documents: Iterable[Document], schema: Schema) -> list[RawObject]:
    return [RawObject(prune(each, schema, is_root=True)) for each in documents]


def _version_of(resource: Resource) -> str:
    assert resource.custom is not None
    return resource.custom.name


def _api_version(resource: Resource, version: str) -> str:
    return f"{resource.group}/{version}"


def _codec_of(resource: Resource) -> CustomCodec:
    codec = storage_codec(resource)
    assert isinstance(codec, CustomCodec)
    return codec


def _in_version(stored: StoredObject, body: bytes) -> ConvertedObject:
    entry = stored.entry
    return ConvertedObject(Entry(entry.key, body, entry.revision, entry.created), stored.codec)


def _document(obj: RawObject, codec: CustomCodec) -> bytes:
    """The whole object as JSON, without a resourceVersion."""
    api_version = str(obj.data["apiVersion"])
    body = codec.encode(obj, api_version.rpartition("/")[2])
    return with_type(body, codec.resource.kind, api_version)


def _calls(documents: Sequence[bytes]) -> Iterable[list[bytes]]:
    """The documents of each call."""
    call: list[bytes] = []
    size = 0
    for document in documents:
        if call and size + len(document) > CALL_BYTES:
            yield call
            call, size = [], 0
        call.append(document)
        size += len(document)
    if call:
        yield call
