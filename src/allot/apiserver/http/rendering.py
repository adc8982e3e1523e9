"""Objects as the client wants to see them: whole, as metadata only, or as rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final

import msgspec

from allot.api.raw import RawObject
from allot.apiserver.api_errors import ApiError, bad_request
from allot.apiserver.http.list_bodies import ListFrame
from allot.apiserver.http.negotiation import Accepted
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.pacing import json_work
from allot.apiserver.printers.ages import human_age
from allot.apiserver.printers.column import NAME_AND_AGE, Column, Table
from allot.apiserver.registry.reading import ListMeta
from allot.apiserver.watch_cache.codec import Codec
from allot.apiserver.watch_cache.object_changes import ObjectChange, event_line
from allot.apiserver.watch_cache.stored_objects import (
    StoredObject,
    type_head,
    with_revision,
    with_type,
)

META: Final = "meta.k8s.io"
INCLUDES: Final = ("", "None", "Metadata", "Object")


class Renderer:
    """Writes objects of one resource in one version. This one writes them whole."""

    def __init__(self, codec: Codec, version: str) -> None:
        self.codec = codec
        self.version = version
        self._gvk = codec.resource.gvk(version)
        self._api_version = str(self._gvk.group_version)
        self._head = type_head(self._gvk.kind, self._api_version)

    def one(self, stored: StoredObject) -> bytes:
        return self._head + stored.body(self.codec, self.version)[1:]

    def written(self, stored: StoredObject) -> bytes:
        """A whole object with a line break, as the answer of a write. It is not kept: few objects are read as soon as they are written."""
        body = stored.without_revision(self.codec, self.version)
        return with_revision(body, stored.revision, self._head, b"\n")

    def work_size(self, stored: StoredObject) -> int:
        """How much work an object is, in bytes of JSON."""
        return len(stored.entry.value)

    def frame(self, meta: ListMeta) -> ListFrame:
        """A list without its items. Only lists of custom resources say that there is no next page."""
        shown = meta.as_json()
        if self.codec.resource.custom is not None:
            shown = {"continue": "", **shown}
        return ListFrame(
            {
                "kind": self.codec.resource.info.list_name,
                "apiVersion": self._api_version,
                "metadata": shown,
            }
        )

    def item(self, stored: StoredObject) -> bytes:
        """An object as a list item. Only custom resources say there what they are."""
        if self.codec.resource.custom is not None:
            return self.one(stored)
        return stored.body(self.codec, self.version)

    def in_order(self, objects: Sequence[StoredObject]) -> Sequence[StoredObject]:
        """The objects in the order in which a list has them."""
        return objects

    def event(self, change: ObjectChange, type_: str) -> bytes:
        return change.line(type_, self.codec, self.version, self._head)

    def initial(self, stored: StoredObject) -> bytes:
        """An object that was there before the watch began."""
        return event_line("ADDED", self.one(stored))

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        kind, api_version = self._bookmark_type()
        return event_line(
            "BOOKMARK",
            msgspec.json.encode({"kind": kind, "apiVersion": api_version, "metadata": metadata}),
        )

    def _bookmark_type(self) -> tuple[str, str]:
        return self._gvk.kind, self._api_version

    def error(self, error: ApiError) -> bytes:
        """The event that ends a watch."""
        return event_line("ERROR", msgspec.json.encode(error.status()))


class PartialRenderer(Renderer):
    """Writes metadata only."""

    def __init__(self, codec: Codec, version: str, meta_version: str) -> None:
        super().__init__(codec, version)
        self._meta_version = f"{META}/{meta_version}"

    def one(self, stored: StoredObject) -> bytes:
        return self._partial(stored, stored.revision)

    def frame(self, meta: ListMeta) -> ListFrame:
        return ListFrame(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": self._meta_version,
                "metadata": meta.as_json(),
            }
        )

    def item(self, stored: StoredObject) -> bytes:
        return self.one(stored)

    def event(self, change: ObjectChange, type_: str) -> bytes:
        return event_line(type_, self._partial(change.shown(type_), change.revision))

    def _partial(self, stored: StoredObject, revision: int) -> bytes:
        """The stored bytes of the metadata as a document of its own."""
        metadata = _metadata_decoder.decode(stored.entry.value).metadata
        body = with_revision(b'{"metadata":%b}' % metadata, revision)
        return with_type(body, "PartialObjectMetadata", self._meta_version)

    def _bookmark_type(self) -> tuple[str, str]:
        return "PartialObjectMetadata", self._meta_version


class TableRenderer(Renderer):
    """Writes what `kubectl get` prints."""

    def __init__(
        self,
        codec: Codec,
        version: str,
        meta_version: str,
        include: str,
        clock: Callable[[], datetime],
        subresource: str = "",
    ) -> None:
        super().__init__(codec, version)
        self._meta_version = f"{META}/{meta_version}"
        self._include = include
        self._clock = clock
        is_plain = subresource in codec.resource.plain_tables
        self._table = NAME_AND_AGE if is_plain else codec.resource.table
        self._headed = False

    def work_size(self, stored: StoredObject) -> int:
        return json_work(stored.entry.value)

    def one(self, stored: StoredObject) -> bytes:
        row = self._row(stored, stored.revision)
        metadata = {"resourceVersion": str(stored.revision)}
        return msgspec.json.encode(self._document([row], metadata))

    def frame(self, meta: ListMeta) -> ListFrame:
        fields = self._document([], meta.as_json())
        del fields["rows"]
        return ListFrame(fields, "rows")

    def in_order(self, objects: Sequence[StoredObject]) -> Sequence[StoredObject]:
        order = self._table.order
        return objects if order is None else sorted(objects, key=lambda each: order(each.object))

    def item(self, stored: StoredObject) -> bytes:
        return msgspec.json.encode(self._row(stored, stored.revision))

    def event(self, change: ObjectChange, type_: str) -> bytes:
        shown = change.shown(type_)
        return event_line(type_, self._row_of_watch(shown, change.revision))

    def initial(self, stored: StoredObject) -> bytes:
        return event_line("ADDED", self._row_of_watch(stored, stored.revision))

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        row_metadata: dict[str, Any] = metadata | {"creationTimestamp": None}
        if annotations:
            row_metadata["annotations"] = annotations
        partial = {
            "kind": self._gvk.kind,
            "apiVersion": self._api_version,
            "metadata": row_metadata,
        }
        table = self._document([{"cells": [], "object": partial}], metadata)
        return event_line("BOOKMARK", msgspec.json.encode(table))

    def _row_of_watch(self, stored: StoredObject, revision: int) -> bytes:
        row = self._row(stored, revision)
        return msgspec.json.encode(self._document([row], {"resourceVersion": str(revision)}))

    def _document(self, rows: list[dict[str, Any]], metadata: dict[str, Any]) -> dict[str, Any]:
        """The columns are described once; later events of a watch leave them out."""
        document = _table_document(self._meta_version, metadata, self._table, rows)
        if self._headed:
            document["columnDefinitions"] = None
        self._headed = True
        return document

    def _row(self, stored: StoredObject, revision: int) -> dict[str, Any]:
        now = self._clock()
        row: dict[str, Any] = {
            "cells": self._table.row(stored.object, lambda time: human_age(time, now)),
            "object": None,
        }
        if self._include == "Object":
            body = stored.without_revision(self.codec, self.version)
            whole = msgspec.json.decode(with_type(body, self._gvk.kind, self._api_version))
            whole["metadata"]["resourceVersion"] = str(revision)
            row["object"] = whole
        elif self._include != "None":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": self._meta_version,
                "metadata": metadata_of(stored) | {"resourceVersion": str(revision)},
            }
        return row


def table_of_document(
    document: dict[str, Any], table: Table, meta_version: str, now: datetime
) -> dict[str, Any]:
    """The table of one object that is not stored, such as a Scale."""
    api_version = f"{META}/{meta_version}"
    metadata = document["metadata"]
    row = {
        "cells": table.row(RawObject(document), lambda time: human_age(time, now)),
        "object": {
            "kind": "PartialObjectMetadata",
            "apiVersion": api_version,
            "metadata": metadata,
        },
    }
    version = metadata.get("resourceVersion", "")
    return _table_document(api_version, {"resourceVersion": version}, table, [row])


def _table_document(
    api_version: str, metadata: dict[str, Any], table: Table, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": metadata,
        "columnDefinitions": [_described(column, table) for column in table.columns],
        "rows": rows,
    }


def _described(column: Column, table: Table) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": table.description(column),
        "priority": column.priority,
    }


def metadata_of(stored: StoredObject) -> dict[str, Any]:
    """An object's metadata as JSON values."""
    document = msgspec.json.decode(stored.entry.value, type=_OnlyMetadata)
    metadata = document.metadata
    if stored.revision:
        metadata["resourceVersion"] = str(stored.revision)
    return metadata


class _OnlyMetadata(msgspec.Struct):
    metadata: dict[str, Any]


class _RawMetadata(msgspec.Struct):
    metadata: msgspec.Raw


_metadata_decoder: Final = msgspec.json.Decoder(_RawMetadata)


def renderer_for(
    request: ApiRequest,
    accepted: Accepted,
    codec: Codec,
    version: str,
    clock: Callable[[], datetime],
    subresource: str = "",
) -> Renderer:
    """The form of answer the client asked for."""
    match accepted.transform:
        case "Table":
            include = request.query.get("includeObject", "")
            if include not in INCLUDES:
                raise bad_request(
                    f'unrecognized includeObject value: "{include}"; '
                    "must be one of None, Metadata, Object"
                )
            return TableRenderer(codec, version, accepted.version, include, clock, subresource)
        case "PartialObjectMetadata" | "PartialObjectMetadataList":
            return PartialRenderer(codec, version, accepted.version)
    return plain_renderer(codec, version)


plain_renderer: Final = cache(Renderer)
"""Of built-in resources: there are as many as they have versions."""
