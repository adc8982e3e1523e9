"""The field manager of each endpoint: what `managed_fields` needs to know about the served kinds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from allot.api import scheme
from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.decoding import decode
from allot.api.identities import GroupVersion
from allot.api.managed_fields import without_managed_fields
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject
from allot.apiserver.http.routes import Target
from allot.apiserver.kinds.reset_fields import reset_fields
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.managed_fields.allocations import allocation_shape, for_consumer
from allot.apiserver.managed_fields.comparison import Comparison
from allot.apiserver.managed_fields.custom_schemas import custom_value_type
from allot.apiserver.managed_fields.field_manager import FieldManager
from allot.apiserver.managed_fields.kind_schemas import empty_object, value_type
from allot.apiserver.managed_fields.partial_decoding import decode_partly
from allot.apiserver.managed_fields.updated_objects import (
    Differences,
    UpdatedDocument,
    UpdatedObject,
)
from allot.apiserver.managed_fields.updater import Document, UnknownVersionError
from allot.apiserver.managed_fields.value_types import ValueType
from allot.apiserver.schemas.types import type_of
from allot.apiserver.watch_cache.codecs import RawCodec, TypedCodec, codec_for, type_meta
from allot.validation.structural.pruning import prune


class KindVersions:
    """The served versions of a kind. Nothing is converted between groups: an event has managers in one."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._types: dict[str, ValueType] = {}

    def type_of(self, api_version: str) -> ValueType:
        known = self._types.get(api_version)
        if known is not None:
            return known
        group_version = GroupVersion.parse(api_version)
        if not self._serves(group_version):
            raise UnknownVersionError(api_version)
        self._types[api_version] = type_ = self._type_in(group_version.version)
        return type_

    def _type_in(self, version: str) -> ValueType:
        custom = self._resource.custom
        if custom is not None:
            return custom_value_type(custom.kind.versions[version].schema)
        found = type_of(self._resource.gvk(version))
        assert found is not None
        return value_type(found.name)

    def convert(self, document: Document, to: str) -> Document:
        found = str(document.get("apiVersion", ""))
        if found == to:
            return document
        target, source = GroupVersion.parse(to), GroupVersion.parse(found)
        if not self._serves(target) or not self._serves(source):
            raise UnknownVersionError(to)
        return _converted(document, self._resource, source.version, target.version)

    def _serves(self, group_version: GroupVersion) -> bool:
        resource = self._resource
        versions = resource.versions if resource.custom is None else resource.custom.kind.versions
        return group_version.group == resource.group and group_version.version in versions


def _converted(document: Document, resource: Resource, source: str, target: str) -> Document:
    """An object in another version, without defaults."""
    if resource.custom is not None:
        schema = resource.custom.kind.versions[target].schema
        pruned: Document = prune(document, schema, is_root=True)
        return {**pruned, "apiVersion": f"{resource.group}/{target}"}
    codec = codec_for(resource)
    if isinstance(codec, RawCodec):
        return codec.converted(document, source, target)
    _, version = scheme.lookup(resource.gvk(source))
    versioned = decode(msgspec.json.encode(document), version.cls, source)
    body = scheme.encode_object(version.to_hub(versioned), resource.gvk(target))
    converted: Document = msgspec.json.decode(body)
    return converted


@cache
def field_manager_for(resource: Resource, version: str, subresource: str) -> FieldManager:
    """Keeps managedFields of what is written at this endpoint."""
    gvk = resource.gvk(version)
    schema = type_of(gvk)
    assert schema is not None
    return FieldManager(
        KindVersions(resource),
        str(gvk.group_version),
        gvk.kind,
        empty_object(schema),
        subresource=subresource,
        ignored=reset_fields(resource, subresource),
    )


def _custom_field_manager(resource: Resource, version: str, subresource: str) -> FieldManager:
    """The same for a custom resource, kept as long as the resource is served."""
    key = (FieldManager, subresource)
    if key not in resource.derived:
        gvk = resource.gvk(version)
        resource.derived[key] = FieldManager(
            KindVersions(resource),
            str(gvk.group_version),
            gvk.kind,
            {"metadata": {}},
            subresource=subresource,
            ignored=reset_fields(resource, subresource),
            schema_changes=True,
        )
    found: FieldManager = resource.derived[key]
    return found


def field_manager_of(target: Target) -> FieldManager:
    part = target.subresource
    if target.resource.custom is not None:
        return _custom_field_manager(target.resource, target.version, part.name if part else "")
    return field_manager_for(target.resource, target.version, part.name if part else "")


def new_document(obj: Any, target: Target) -> Document:
    """The parts of a new object as far as ownership goes: those of DRA kinds stay JSON, and the metadata as it is.

    Of a claim in the hub version it has the spec as it is, which claims may share, and not the status, which its creator does not own.
    """
    if (
        obj.__class__ is ResourceClaim
        and obj.spec.devices.requests  # without any they are written as null
        and _has_typed_parts(target.resource, target.version)
    ):
        return {"metadata": obj.metadata, "spec": obj.spec}
    if isinstance(obj, RawObject):
        document = codec_for(target.resource).parts_of_new(obj, target.version)
        metadata = document["metadata"]
        if metadata.__class__ is dict and "managedFields" in metadata:
            kept = {name: each for name, each in metadata.items() if name != "managedFields"}
            document["metadata"] = kept
        return document
    gvk = target.resource.gvk(target.version)
    body = scheme.encode_object(without_managed_fields(obj), gvk, type_meta=False)
    document = _parts_decoder.decode(body)
    document["metadata"] = obj.metadata
    return document


_parts_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def partial_document(obj: Any, target: Target) -> Document:
    """The same as far as ownership goes: atomic parts of DRA kinds stay JSON."""
    bare = without_managed_fields(obj)
    if isinstance(bare, RawObject):
        return codec_for(target.resource).document(bare, target.version)
    gvk = target.resource.gvk(target.version)
    schema = type_of(gvk)
    assert schema is not None
    return decode_partly(scheme.encode_object(bare, gvk), value_type(schema.name))


def updated_object(new: Any, old: Any, target: Target) -> UpdatedObject:
    """An update as far as ownership goes."""
    if target.resource.info.is_typed and _has_typed_parts(target.resource, target.version):
        return UpdatedTyped(old, new, target)
    return UpdatedDocument(partial_document(old, target), partial_document(new, target))


@cache
def _has_typed_parts(resource: Resource, version: str) -> bool:
    codec = codec_for(resource)
    return isinstance(codec, TypedCodec) and codec.has_parts((), version)


class UpdatedTyped(msgspec.Struct, frozen=True):
    """An update of a DRA kind in its hub version: only fields that differ become JSON."""

    old: Any
    new: Any
    target: Target

    def whole(self) -> tuple[Document, Document]:
        return partial_document(self.old, self.target), partial_document(self.new, self.target)

    def compared(self, differences: Differences) -> Comparison:
        old, new = self.old, self.new
        fields = _names_but(old.__class__, differences.ignored)
        if fields == _ONLY_STATUS and new.__class__ is ResourceClaim:
            shape = allocation_shape(old.status, new.status)
            if shape is not None:
                found = differences.of_shape(shape, partial(self.differing, fields))
                return for_consumer(found, new.status.reserved_for[0].uid)
        names = [
            name
            for name in fields
            if (was := getattr(old, name)) is not (is_now := getattr(new, name)) and was != is_now
        ]
        return differences.of_text(self.differing(names))

    def differing(self, names: Sequence[str]) -> bytes:
        """Both with these fields, which differ, as one list."""
        old, new = self.old, self.new
        if "metadata" in names:
            before, after = _differing_metadata(old.metadata, new.metadata)
            if len(names) == 1:
                return scheme.encode_metadata(before, after)
            old, new = replace(old, metadata=before), replace(new, metadata=after)
        resource = self.target.resource
        version = scheme.version_of(resource.info, self.target.version)
        return scheme.encode_parts(old, new, names, version)


_ONLY_STATUS: Final = ("status",)


@cache
def _names_but(kind: type[msgspec.Struct], ignored: frozenset[str]) -> tuple[str, ...]:
    """The fields of objects of a kind without those that are ignored."""
    return tuple(name for name in kind.__struct_fields__ if name not in ignored)


def _differing_metadata(old: ObjectMeta, new: ObjectMeta) -> tuple[ObjectMeta, ObjectMeta]:
    """Both without the fields that are equal, and without managedFields."""
    finalizers = new.finalizers
    if replace(old, finalizers=finalizers, managed_fields=new.managed_fields) == new:
        return ObjectMeta(finalizers=old.finalizers), ObjectMeta(finalizers=finalizers)
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for name, was, is_now in zip(
        ObjectMeta.__struct_fields__, astuple(old), astuple(new), strict=True
    ):
        if was != is_now and name != "managed_fields":
            before[name], after[name] = was, is_now
    return ObjectMeta(**before), ObjectMeta(**after)


def plain_document(bare: Any, target: Target) -> Document:
    """An object without managedFields as JSON values in the version of the request.

    They may be shared: leave them as they are.
    """
    if isinstance(bare, RawObject):
        return codec_for(target.resource).document(bare, target.version)
    gvk = target.resource.gvk(target.version)
    document: Document = msgspec.json.decode(scheme.encode_object(bare, gvk))
    return document


def parts_of(obj: RawObject, target: Target) -> Document:
    """The same of an object in its storage version, but without metadata, which is not JSON yet after a write."""
    kind, api_version = type_meta(target.resource, target.version)
    parts = {**obj.rest, "kind": kind, "apiVersion": api_version}
    parts.pop("metadata", None)
    return parts
