"""Custom resources between JSON and objects: pruned, defaulted and converted by the schemas of their definition.

Stored JSON says in which version it was written, after everything else. Without a webhook, conversion changes the
apiVersion only and drops what the other version does not know. With one, stored objects stay in the version they were
written in, and `registry.conversion` asks the webhook.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import msgspec

from allot.api.decoding import DecodeError
from allot.api.large_json import decode_in_pieces
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject
from allot.api.strictness import Pairs, decode_pairs, has_no_duplicates
from allot.apiserver.kinds.custom_versions import CustomVersion
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import release_interpreter
from allot.apiserver.schemas.strictness import errors_of_type
from allot.apiserver.schemas.tables import META
from allot.apiserver.schemas.types import type_named
from allot.apiserver.watch_cache.codec import Codec
from allot.apiserver.watch_cache.codecs import with_lists
from allot.validation.fields import FieldPath, invalid
from allot.validation.structural.defaulting import (
    DefaultsTooLargeError,
    with_defaults,
    without_nulls,
)
from allot.validation.structural.pruning import prune
from allot.validation.structural.schemas import Schema

STORED: Final = "stored"
"""The form in which custom resources are stored; no version has this name."""
_METADATA_TYPE: Final = f"{META}.ObjectMeta"
_TEXT_MAPS: Final = ("labels", "annotations")


def _number(text: str) -> float:
    """A number with a fraction or an exponent; whole ones are integers, as Go writes them."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"cannot unmarshal number {text[:64]} into Go value of type float64")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


_decoder: Final = msgspec.json.Decoder(float_hook=_number)


class CustomCodec(Codec):
    """One version of a custom resource."""

    def __init__(self, resource: Resource) -> None:
        assert resource.custom is not None
        super().__init__(resource, STORED)
        self._version: CustomVersion = resource.custom
        kind = self._version.kind
        self._versions = kind.versions
        self._storage = kind.versions[kind.storage_version]
        self._group = resource.group

    # --- requests ---

    def decode(self, body: bytes, version: str, now: datetime) -> RawObject:
        return self._read(body, None)

    def decode_strictly(
        self, body: bytes, version: str, now: datetime
    ) -> tuple[RawObject, list[str]]:
        unknown: list[str] = []
        obj = self._read(body, unknown)
        return obj, [*_duplicates(body), *(f'unknown field "{path}"' for path in unknown)]

    def _read(self, body: bytes, unknown: list[str] | None) -> RawObject:
        try:
            data = _decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
            raise DecodeError(f"json: {error}") from None
        if not isinstance(data, dict):
            raise DecodeError(f"json: cannot unmarshal {type(data).__name__} into an object")
        release_interpreter(len(body))
        self._version.weigh()
        schema = self._version.schema
        pruned: list[str] = []
        in_metadata: list[str] = []
        data = prune(data, schema, is_root=True, unknown=pruned)
        data = _with_known_metadata(data, schema, "", in_metadata, is_resource=True)
        if unknown is not None:
            unknown += [*sorted(pruned), *in_metadata]
        data = without_nulls(data, schema) if b"null" in body else data
        try:
            data = with_defaults(data, schema)
        except DefaultsTooLargeError as error:
            raise DecodeError(str(error)) from None
        return RawObject({**data, **self._type_meta(self._version.name)})

    def _type_meta(self, version: str) -> dict[str, str]:
        return {"kind": self.resource.kind, "apiVersion": f"{self._group}/{version}"}

    def decode_protobuf(self, content: bytes, version: str, now: datetime) -> RawObject:
        raise DecodeError("custom resources have no protobuf encoding")

    def encode_protobuf(self, obj: Any, version: str) -> bytes:
        raise DecodeError("custom resources have no protobuf encoding")

    def has_protobuf(self, version: str) -> bool:
        return False

    def strict_issues(self, body: bytes, version: str) -> list[str]:
        unknown: list[str] = []
        self._read(body, unknown)
        return [*_duplicates(body), *(f'unknown field "{path}"' for path in unknown)]

    # --- storage ---

    def decode_stored(self, body: bytes) -> RawObject:
        data: dict[str, Any] = decode_in_pieces(body)
        written = data.pop("apiVersion", "")
        version = self._versions.get(written, self._storage)
        data = prune(data, version.schema, is_root=True)
        # Defaults that were added to the schema later may be too large: the object is still readable.
        with suppress(DefaultsTooLargeError):
            data = with_defaults(data, version.schema)
        if version is not self._storage and not self._version.kind.has_webhook:
            version = self._storage
            data = prune(data, version.schema, is_root=True)
        return RawObject({**data, **self._type_meta(version.name)})

    def decode_converted(self, body: bytes) -> RawObject:
        """The object in bytes that `encode_converted` wrote, without further defaults."""
        data: dict[str, Any] = msgspec.json.decode(body)
        return RawObject({**data, **self._type_meta(data["apiVersion"])})

    def encode_converted(self, obj: RawObject, version: str) -> bytes:
        """JSON as it is stored, of an object that is in this version."""
        return self._encoded(obj, self._versions[version], stored=True)

    def encode(self, obj: RawObject, version: str) -> bytes:
        if version == STORED:
            return self._encoded(obj, self._storage, stored=True)
        return self._encoded(obj, self._versions[version], stored=False)

    def _encoded(self, obj: RawObject, target: CustomVersion, *, stored: bool) -> bytes:
        data = self._converted(obj, target)
        metadata = {
            name: value
            for name, value in (data.pop("metadata", None) or {}).items()
            if name != "resourceVersion"
        }
        del data["kind"], data["apiVersion"]
        document = {"metadata": metadata, **data}
        if stored:
            document["apiVersion"] = target.name
        return msgspec.json.encode(document)

    def _converted(self, obj: RawObject, target: CustomVersion) -> dict[str, Any]:
        """The object in a version. Only what is in another version has to be pruned."""
        data = dict(obj.data)
        if data.get("apiVersion") != f"{self._group}/{target.name}":
            data = dict(prune(data, target.schema, is_root=True))
        return data

    def document(self, obj: RawObject, version: str) -> dict[str, Any]:
        data = self._converted(obj, self._versions[version])
        data["metadata"] = with_lists(data.get("metadata") or {})
        return {**data, **self._type_meta(version)}

    def with_metadata(self, obj: RawObject, metadata: ObjectMeta) -> RawObject:
        return obj.with_metadata(metadata)

    def field(self, obj: RawObject, path: str) -> str:
        value = obj.get(*path.split("."))
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None or isinstance(value, dict | list) else str(value)


# --- metadata ---


def _with_known_metadata(
    data: Any, schema: Schema, path: str, unknown: list[str], *, is_resource: bool = False
) -> Any:
    """Objects with the metadata that the API knows: of the object itself, and of embedded ones.

    `DecodeError` if a value has the wrong type.
    """
    if isinstance(data, dict):
        changed: dict[str, Any] = {}
        if is_resource:
            _check_type_meta(data, path)
            if "metadata" in data:
                changed["metadata"] = _known_metadata(data["metadata"], path, unknown)
        if schema.has_embedded_below:
            for name, item in data.items():
                child = schema.below(name)
                if child is None or name in changed or not child.has_embedded_below:
                    continue
                where = f"{path}.{name}" if path else name
                kept = _with_known_metadata(
                    item, child, where, unknown, is_resource=child.is_embedded
                )
                if kept is not item:
                    changed[name] = kept
        return {**data, **changed} if changed else data
    if isinstance(data, list) and schema.items is not None and schema.has_embedded_below:
        items = schema.items
        return [
            _with_known_metadata(
                item, items, f"{path}[{index}]", unknown, is_resource=items.is_embedded
            )
            for index, item in enumerate(data)
        ]
    return data


def _check_type_meta(data: Mapping[str, Any], path: str) -> None:
    for name in ("apiVersion", "kind"):
        value = data.get(name)
        if value is not None and not isinstance(value, str):
            where = f"{path}.{name}" if path else name
            raise DecodeError(str(invalid(FieldPath(where), value, "must be a string")))


def _known_metadata(metadata: Any, path: str, unknown: list[str]) -> dict[str, Any]:
    if metadata is None:
        return {}
    schema = type_named(_METADATA_TYPE)
    problem = errors_of_type(metadata, schema)
    if problem is not None:
        raise problem
    where = f"{path}.metadata" if path else "metadata"
    kept: dict[str, Any] = {}
    for name, value in metadata.items():
        if name not in schema.fields:
            unknown.append(f"{where}.{name}")
        elif name in _TEXT_MAPS and value:
            kept[name] = {key: text or "" for key, text in value.items()}
        elif value is not None and value not in ([], {}):
            kept[name] = value
    return kept


def _duplicates(body: bytes) -> list[str]:
    """Fields that a document has twice."""
    if has_no_duplicates(body, msgspec.json.decode(body)):
        return []
    found: list[str] = []
    waiting: list[tuple[str, Any]] = [("", decode_pairs(body))]
    while waiting:
        path, value = waiting.pop()
        if type(value) is Pairs:
            count: dict[str, int] = {}
            for key, item in value:
                where = f"{path}.{key}" if path else key
                count[key] = count.get(key, 0) + 1
                if count[key] == 2:
                    found.append(f'duplicate field "{where}"')
                if isinstance(item, list):
                    waiting.append((where, item))
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, list):
                    waiting.append((f"{path}[{index}]", item))
    return found
