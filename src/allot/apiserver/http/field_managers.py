"""The field manager of each endpoint: what `managed_fields` needs to know about the served kinds."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from allot.api import scheme
from allot.api.decoding import decode
from allot.api.identities import GroupVersion
from allot.api.managed_fields import without_managed_fields
from allot.api.raw import RawObject
from allot.apiserver.http.routes import Target
from allot.apiserver.kinds.reset_fields import reset_fields
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.managed_fields.field_manager import FieldManager
from allot.apiserver.managed_fields.kind_schemas import empty_object, value_type
from allot.apiserver.managed_fields.partial_decoding import decode_partly
from allot.apiserver.managed_fields.updater import Document, UnknownVersionError
from allot.apiserver.managed_fields.value_types import ValueType
from allot.apiserver.schemas.types import type_of
from allot.apiserver.watch_cache.codecs import codec_for


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
        found = type_of(self._resource.gvk(group_version.version))
        assert found is not None
        self._types[api_version] = type_ = value_type(found.name)
        return type_

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
        return group_version.group == resource.group and group_version.version in resource.versions


def _converted(document: Document, resource: Resource, source: str, target: str) -> Document:
    """An object of a DRA kind in another version, without defaults."""
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


def field_manager_of(target: Target) -> FieldManager:
    part = target.subresource
    return field_manager_for(target.resource, target.version, part.name if part else "")


def new_document(obj: Any, target: Target) -> Document:
    """The same of a new object: of DRA kinds all but the metadata stays JSON."""
    bare = without_managed_fields(obj)
    if isinstance(bare, RawObject):
        return codec_for(target.resource).document(bare, target.version)
    gvk = target.resource.gvk(target.version)
    body = scheme.encode_object(bare, gvk, type_meta=False)
    document: Document = _parts_decoder.decode(body)
    document["metadata"] = msgspec.json.decode(document["metadata"])
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


def plain_document(obj: Any, target: Target) -> Document:
    """The object as JSON values in the version of the request, without managedFields.

    They may be shared: leave them as they are.
    """
    bare = without_managed_fields(obj)
    if isinstance(bare, RawObject):
        return codec_for(target.resource).document(bare, target.version)
    gvk = target.resource.gvk(target.version)
    document: Document = msgspec.json.decode(scheme.encode_object(bare, gvk))
    return document
