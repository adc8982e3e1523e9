"""Between JSON and the objects the server works with: typed for DRA kinds, raw for all others.

Stored JSON is the object in its storage version, without kind, apiVersion and resourceVersion, and
with its metadata first: then an answer in that version is the stored bytes with two insertions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cache, partial
from typing import Any, Final

import msgspec
from msgspec import Raw

from allot.api import scheme
from allot.api.base import replace
from allot.api.claims import ResourceClaim
from allot.api.decoding import decode, to_builtin
from allot.api.identities import GroupVersion, GroupVersionKind
from allot.api.large_json import decode_in_pieces
from allot.api.meta import ObjectMeta
from allot.api.protobuf.envelope import target_of
from allot.api.protobuf.reading import read
from allot.api.protobuf.writing import write
from allot.api.raw import RawObject, read_document
from allot.api.strictness import prepare as prepare_class
from allot.api.strictness import strict_issues
from allot.apiserver.defaults.filling import PartDefaults
from allot.apiserver.kinds.resources import Resource, find, per_resource
from allot.apiserver.pacing import LARGE, release_interpreter
from allot.apiserver.schemas.empty_values import without_empty_values
from allot.apiserver.schemas.null_values import without_nulls
from allot.apiserver.schemas.quantities import canonical_part, with_canonical_quantities
from allot.apiserver.schemas.strictness import (
    check_strictly,
    known_fields,
    prepare,
    unknown_fields,
)
from allot.apiserver.schemas.unknown_fields import without_unknown_fields
from allot.apiserver.watch_cache import autoscaler_versions, event_versions
from allot.apiserver.watch_cache.codec import Codec, PartialCodec
from allot.apiserver.watch_cache.known_claims import KnownClaims
from allot.apiserver.watch_cache.known_specs import KnownSpecs, sent_parts
from allot.apiserver.watch_cache.plain_events import plain_event

HUB: Final = "hub"
"""The storage version of a kind none of whose versions can say everything."""
_KIND_FIRST: Final = b'{"kind":'
METADATA_HEAD: Final = b'{"metadata":{'


class TypedCodec(PartialCodec):
    """Kinds of resource.k8s.io: msgspec structs in the hub version."""

    keeps_written = True

    def __init__(self, resource: Resource) -> None:
        self._kind = kind = resource.info
        self._hub = kind.hub_type
        says_all = scheme.version_of(kind, kind.storage_version).cls is kind.hub
        super().__init__(resource, kind.storage_version if says_all else HUB)
        self._hub_versions = frozenset(
            version for version in kind.versions if scheme.version_of(kind, version).cls is kind.hub
        )
        self._known_claims = {
            version: KnownClaims(resource.gvk(version))
            for version in self._hub_versions
            if self._hub is ResourceClaim
        }

    def decode(self, body: bytes, version: str, now: datetime) -> Any:
        return scheme.decode_object(body, self.resource.gvk(version), now)

    def decode_strictly(self, body: bytes, version: str, now: datetime) -> tuple[Any, list[str]]:
        if len(body) > LARGE:  # another encoding would make the stretch longer
            return super().decode_strictly(body, version, now)
        obj, is_canonical = scheme.decode_canonical(body, self.resource.gvk(version), now)
        # As the bodies of our own components are.
        issues = [] if is_canonical else self.strict_issues(body, version)
        if body[:8] == _KIND_FIRST and version in self._known_claims and not issues:
            self._known_claims[version].add(body, obj.spec)
        return obj, issues

    def decode_known(self, body: bytes, version: str) -> Any:
        known_claims = self._known_claims.get(version)
        return None if known_claims is None else known_claims.find(body)

    def decode_protobuf(self, content: bytes, version: str, now: datetime) -> Any:
        return scheme.decode_protobuf(content, self.resource.gvk(version), now)

    def encode_protobuf(self, obj: Any, version: str) -> bytes:
        return scheme.encode_protobuf(obj, self.resource.gvk(version))

    def strict_issues(self, body: bytes, version: str) -> list[str]:
        cls = scheme.version_of(self._kind, version).cls
        issues = strict_issues(body, cls)
        return [str(issue) for issue in issues] if issues else []

    def decode_stored(self, body: bytes) -> Any:
        return decode(body, self._hub, self.storage_version)

    def as_stored(self, obj: Any, metadata: ObjectMeta) -> Any:
        if self.storage_version != HUB:
            obj = scheme.to_version(obj, self.resource.gvk(self.storage_version))
        return replace(obj, metadata=metadata)

    def encode(self, obj: Any, version: str) -> bytes:
        if obj.metadata.resource_version:
            obj = replace(obj, metadata=replace(obj.metadata, resource_version=""))
        if version == HUB:
            return scheme.encode_hub(obj)
        return scheme.encode_as(obj, scheme.version_of(self._kind, version))

    def document(self, obj: Any, version: str) -> dict[str, Any]:
        gvk = self.resource.gvk(version)
        plain = msgspec.to_builtins(
            scheme.to_version(obj, gvk), enc_hook=to_builtin, builtin_types=(bytes, Raw)
        )
        kind, api_version = type_meta(self.resource, version)
        return {"kind": kind, "apiVersion": api_version, **with_lists(plain)}

    def has_parts(self, names: Collection[str], version: str) -> bool:
        fields = self._hub.__struct_fields__
        return version in self._hub_versions and all(name in fields for name in names)

    def parts(self, obj: Any, names: Collection[str], version: str) -> dict[str, Any]:
        versioned = scheme.to_version(obj, self.resource.gvk(version))
        plain = msgspec.to_builtins(
            {name: getattr(versioned, name) for name in names},
            enc_hook=to_builtin,
            builtin_types=(bytes, Raw),
        )
        kind, api_version = type_meta(self.resource, version)
        return {"kind": kind, "apiVersion": api_version, **with_lists(plain)}

    def with_parts(
        self, obj: Any, names: Collection[str], body: bytes, version: str, now: datetime
    ) -> tuple[Any, list[str]]:
        read, issues = self.decode_strictly(body, version, now)
        return replace(obj, **{name: getattr(read, name) for name in names}), issues

    def with_metadata(self, obj: Any, metadata: ObjectMeta) -> Any:
        return replace(obj, metadata=metadata)

    def field(self, obj: Any, path: str) -> str:
        match path:
            case "spec.driver":
                value = obj.spec.driver
            case "spec.nodeName":
                value = obj.spec.node_name
            case "spec.pool.name":
                value = obj.spec.pool.name
            case _:
                raise KeyError(path)
        return value or ""


class RawCodec(PartialCodec):
    """All other kinds: the JSON they came as, seen through views."""

    keeps_written = True
    view: type[RawObject]

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource, resource.info.storage_version)
        self.view = resource.info.view
        self._type_meta = {"kind": resource.kind, "apiVersion": str(self._group_version)}
        self._defaults = resource.defaults
        self._has_part_defaults = isinstance(resource.defaults, PartDefaults)
        self._known_specs: KnownSpecs | None = None
        if isinstance(resource.defaults, PartDefaults):
            self._known_specs = KnownSpecs(resource.gvk(self.storage_version))
            gvk = resource.gvk(self.storage_version)
            self._defaults = resource.defaults.after(partial(canonical_part, gvk))

    @property
    def _group_version(self) -> GroupVersion:
        return GroupVersion(self.resource.group, self.storage_version)

    def decode(self, body: bytes, version: str, now: datetime) -> RawObject:
        gvk = self.resource.gvk(version)
        document = known_fields(read_document(body), gvk)
        return self._with_defaults(self._cleaned(document, body, gvk), version)

    def decode_strictly(
        self, body: bytes, version: str, now: datetime
    ) -> tuple[RawObject, list[str]]:
        known_specs = self._known_specs
        parts = None if known_specs is None else sent_parts(body)
        if known_specs is not None and parts is not None:
            found = known_specs.find(parts, body)
            if found is not None:
                metadata, spec = found
                return self.view({"metadata": metadata, "spec": spec, **self._type_meta}), []
        gvk = self.resource.gvk(version)
        document: Mapping[str, Any] = read_document(body)
        issues = check_strictly(body, document, gvk)
        if issues:
            document = without_unknown_fields(document, gvk)
        if len(body) > LARGE:
            release_interpreter(len(body))
        obj = self._with_defaults(self._cleaned(document, body, gvk), version)
        if issues:
            return obj, [str(issue) for issue in issues]
        if known_specs is not None and parts is not None and "spec" in obj.data:
            known_specs.add(parts, obj.data["spec"])
        return obj, []

    def decode_known(self, body: bytes, version: str) -> RawObject | None:
        known_specs = self._known_specs
        if known_specs is None or version != self.storage_version:
            return None
        found = known_specs.find_plain(body)
        if found is None:
            return None
        metadata, spec = found
        return self.view.with_rest({"metadata": {}, "spec": spec, **self._type_meta}, metadata)

    def _cleaned(
        self, data: Mapping[str, Any], body: bytes, gvk: GroupVersionKind
    ) -> dict[str, Any]:
        """The document in `body` with canonical quantities, without nulls and empty values."""
        has_nulls = b"null" in body
        cleaned = dict(data)
        if has_nulls or not self._has_part_defaults:  # which write quantities, too
            cleaned = with_canonical_quantities(cleaned, gvk)
        if has_nulls:
            cleaned = without_nulls(cleaned, gvk)
        return without_empty_values(cleaned, body, gvk)

    def decode_protobuf(self, content: bytes, version: str, now: datetime) -> RawObject:
        # Messages have no fields of other types and no nulls.
        gvk = self.resource.gvk(version)
        document = read(content, target_of(gvk))
        if not self._has_part_defaults:
            document = with_canonical_quantities(document, gvk)
        return self._with_defaults(document, version)

    def _with_defaults(self, data: dict[str, Any], version: str) -> RawObject:
        stored = self._to_storage(data, version)
        filled = self._defaults(stored)
        return self.view({**filled, **self._type_meta})

    def encode_protobuf(self, obj: RawObject, version: str) -> bytes:
        data = self._from_storage(obj.data, version)
        return write(data, target_of(self.resource.gvk(version)))

    def strict_issues(self, body: bytes, version: str) -> list[str]:
        return [str(issue) for issue in unknown_fields(body, self.resource.gvk(version))]

    def decode_stored(self, body: bytes) -> RawObject:
        return self.view({**decode_in_pieces(body), **self._type_meta})

    def as_stored(self, obj: RawObject, metadata: ObjectMeta) -> RawObject:
        is_whole = "data" in obj.__dict__
        data = {"metadata": {}, **(obj.data if is_whole else obj.rest)}
        del data["kind"], data["apiVersion"]  # which are last
        stored = self.view({**data, **self._type_meta})
        stored.__dict__["metadata"] = metadata
        if not is_whole or metadata is not obj.metadata:
            del stored.data
        return stored

    def encode(self, obj: RawObject, version: str) -> bytes:
        data = {"metadata": None, **self._from_storage(obj.rest, version)}
        data["metadata"] = obj.stored_metadata()
        del data["kind"], data["apiVersion"]
        return msgspec.json.encode(data)

    def document(self, obj: RawObject, version: str) -> dict[str, Any]:
        data = dict(self._from_storage(obj.data, version))
        if "metadata" not in data:
            data["metadata"] = {}
        data["kind"], data["apiVersion"] = type_meta(self.resource, version)
        return data

    def parts_of_new(self, obj: RawObject, version: str) -> dict[str, Any]:
        if "data" in obj.__dict__:
            return {"metadata": {}, **self._from_storage(obj.data, version)}
        return {**self._from_storage(obj.rest, version), "metadata": obj.stored_metadata()}

    def converted(self, document: dict[str, Any], source: str, target: str) -> dict[str, Any]:
        """A document in another version, without defaults."""
        data = self._from_storage(self._to_storage(dict(document), source), target)
        kind, api_version = type_meta(self.resource, target)
        return {**data, "kind": kind, "apiVersion": api_version}

    def has_parts(self, names: Collection[str], version: str) -> bool:
        return True

    def parts(self, obj: RawObject, names: Collection[str], version: str) -> dict[str, Any]:
        kind, api_version = type_meta(self.resource, version)
        found = {"kind": kind, "apiVersion": api_version}
        data = obj.data
        return found | {name: data[name] for name in names if name in data}

    def with_parts(
        self, obj: RawObject, names: Collection[str], body: bytes, version: str, now: datetime
    ) -> tuple[RawObject, list[str]]:
        sent = read_document(body)
        gvk = self.resource.gvk(version)
        document = known_fields(sent, gvk)
        issues = self.strict_issues(body, version) if document is not sent else []
        read = self._cleaned(document, body, gvk)
        defaults = self._defaults
        if self._has_part_defaults:
            read = defaults({name: read[name] for name in names if name in read})
        for name in names:
            obj = obj.with_value(read.get(name), name)
        if not self._has_part_defaults:
            data = dict(obj.data)
            filled = defaults(data)
            obj = obj if filled is data else self.view(filled)
        return obj, issues

    def with_metadata(self, obj: RawObject, metadata: ObjectMeta) -> RawObject:
        return obj.with_metadata(metadata)

    def field(self, obj: RawObject, path: str) -> str:
        return self.field_reader(path)(obj)

    def field_reader(self, path: str) -> Callable[[RawObject], str]:
        parts, zero = path.split("."), _ZEROES.get(path, "")

        def read(obj: RawObject) -> str:
            value = obj.get(*parts, default=zero)
            if value.__class__ is str:  # mostly
                return value
            if isinstance(value, bool):
                return "true" if value else "false"
            return str(value)

        return read

    def _to_storage(self, data: dict[str, Any], version: str) -> dict[str, Any]:
        return data

    def _from_storage(self, data: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        return data


class EventCodec(RawCodec):
    """Events of events.k8s.io are core events with other field names, and stored as such."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource)
        self._last: tuple[RawObject | None, dict[str, Any]] = (None, {})
        """The last event that was decoded at once, and its parts with the names that it came with."""

    def decode_known(self, body: bytes, version: str) -> RawObject | None:
        found = plain_event(body)
        if found is None:
            return None
        metadata, event = found
        stored = self._to_storage(event, version)
        filled = self._defaults(stored)
        obj = self.view.with_rest({**filled, **self._type_meta}, metadata)
        if filled is stored:
            self._last = obj, {**event, "metadata": metadata}
        return obj

    def parts_of_new(self, obj: RawObject, version: str) -> dict[str, Any]:
        last, parts = self._last
        return {**parts} if obj is last else super().parts_of_new(obj, version)

    def _to_storage(self, data: dict[str, Any], version: str) -> dict[str, Any]:
        return event_versions.to_core(data)

    def _from_storage(self, data: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        return event_versions.from_core(data)

    def has_parts(self, names: Collection[str], version: str) -> bool:
        return False  # in the other version fields have other names

    @property
    def _group_version(self) -> GroupVersion:
        return GroupVersion("", "v1")


class AutoscalerCodec(RawCodec):
    """HorizontalPodAutoscalers are stored as v2."""

    def _to_storage(self, data: dict[str, Any], version: str) -> dict[str, Any]:
        return autoscaler_versions.to_v2(data) if version == autoscaler_versions.V1 else data

    def _from_storage(self, data: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        return autoscaler_versions.to_v1(data) if version == autoscaler_versions.V1 else data

    def encode(self, obj: RawObject, version: str) -> bytes:
        if version == autoscaler_versions.V1:  # which has some fields as annotations
            obj = self.view(self._from_storage(obj.data, version))
        return super().encode(obj, self.storage_version)

    def parts_of_new(self, obj: RawObject, version: str) -> dict[str, Any]:
        return self.document(obj, version)

    def has_parts(self, names: Collection[str], version: str) -> bool:
        return version == self.storage_version  # fields of v1 are annotations there


_ZEROES: Final = {
    "spec.hostNetwork": False,
    "spec.unschedulable": False,
    "status.replicas": 0,
    "status.succeeded": 0,
}
"""The zero values of selectable fields that are not strings."""


@cache
def type_meta(resource: Resource, version: str) -> tuple[str, str]:
    """The kind and apiVersion of objects in a version."""
    gvk = resource.gvk(version)
    return gvk.kind, str(gvk.group_version)


def with_lists(value: Any) -> Any:
    """Our objects hold tuples; patches know the lists of JSON only."""
    if isinstance(value, dict):
        return {name: with_lists(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_lists(item) for item in value]
    return value


@per_resource
def codec_for(resource: Resource) -> Codec:
    if resource.custom is not None:
        from allot.apiserver.watch_cache.custom_codec import CustomCodec  # it is a codec, too

        return CustomCodec(resource)
    if resource.info.is_typed:
        return TypedCodec(resource)
    if resource.stored_as is not None:
        return EventCodec(resource)
    if resource.kind == "HorizontalPodAutoscaler":
        return AutoscalerCodec(resource)
    return RawCodec(resource)


@per_resource
def stored_resource(resource: Resource) -> Resource:
    """The resource whose place in the store this one shares; mostly itself."""
    if resource.custom is not None:
        return resource.custom.kind.home
    if resource.stored_as is None:
        return resource
    group, plural = resource.stored_as
    home = find(GroupVersion(group, "v1"), plural)
    assert home is not None
    return home


@per_resource
def storage_codec(resource: Resource) -> Codec:
    """How the resource is written to the store."""
    return codec_for(stored_resource(resource))


def prepare_for_pods() -> None:
    """Make what the first pod and its claim would wait for: 9 ms."""
    prepare(GroupVersionKind("", "v1", "Pod"))
    prepare_class(ResourceClaim)
