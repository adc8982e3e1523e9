"""Which objects of a resource a list, a watch or a deletecollection is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from allot.api.large_json import decode_path
from allot.api.raw import RawObject
from allot.api.selectors import EVERYTHING, LabelMatcher, LabelSelector
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.pacing import LARGE
from allot.apiserver.selectors import EVERY_KIND, FieldMatcher, FieldSelector
from allot.apiserver.watch_cache.caches import key_prefix
from allot.apiserver.watch_cache.codecs import RawCodec, storage_codec
from allot.apiserver.watch_cache.stored_objects import StoredObject


class Selection:
    """Objects under a prefix that match two selectors, which are compiled once."""

    __slots__ = (
        "_asked",
        "_can_match_parts",
        "_codec",
        "_fields",
        "_labels",
        "_name",
        "_readers",
        "is_everything",
        "prefix",
        "resource",
    )

    def __init__(
        self,
        resource: Resource,
        prefix: str,
        labels: LabelSelector = EVERYTHING,
        fields: FieldSelector = FieldSelector(),  # noqa: B008 - immutable
    ) -> None:
        self.resource = resource
        self.prefix = prefix
        self.is_everything = labels.is_everything and fields.is_everything
        """Whether there is nothing to match, so that objects need not be looked into."""
        self._labels = None if labels.is_everything else LabelMatcher(labels)
        self._fields = None if fields.is_everything else FieldMatcher(fields)
        self._name = fields.exact("metadata.name")
        self._codec = storage_codec(resource)
        names = {requirement.field for requirement in fields.requirements}
        self._asked = {
            name: resource.selectable_fields[name].split(".")
            for name in names.difference(EVERY_KIND)
        }
        """The fields of the kind that are asked for, beside those of all kinds, with their paths."""
        self._can_match_parts = not self._asked or isinstance(self._codec, RawCodec)
        self._readers = {name: self._reader(name) for name in names}
        """What reads the fields that are asked for."""

    def _reader(self, field: str) -> Callable[[Any], str]:
        match field:
            case "metadata.name":
                return lambda obj: str(obj.metadata.name)
            case "metadata.namespace":
                return lambda obj: str(obj.metadata.namespace)
        return self._codec.field_reader(self.resource.selectable_fields[field])

    @property
    def only_key(self) -> str | None:
        """The key of the only object that can match, if the selectors name one: it is looked up, not searched for."""
        name = self._name
        if name is None or (self.resource.namespaced and self.prefix == key_prefix(self.resource)):
            return None
        return self.prefix + name

    def matches(self, stored: StoredObject | None) -> bool:
        """Whether the object, if there is one, is selected. Its prefix counts too."""
        if stored is None or not stored.key.startswith(self.prefix):
            return False
        if self.is_everything:
            return True
        obj = stored.kept_content
        if obj is None:
            if len(stored.entry.value) > LARGE and self._can_match_parts:
                return self._matches_parts(stored)
            obj = stored.object
        if self._labels is not None and not self._labels.matches(obj.metadata.labels):
            return False
        if self._fields is None:
            return True
        readers = self._readers
        return self._fields.matches(lambda name: readers[name](obj))

    def _matches_parts(self, stored: StoredObject) -> bool:
        """The same for a large object, most of which is skipped: to decode it whole takes ten times as long."""
        body = stored.entry.value
        metadata = _metadata.decode(body).metadata
        if self._labels is not None and not self._labels.matches(metadata.labels or {}):
            return False
        if self._fields is None:
            return True
        fields = {"metadata.name": metadata.name, "metadata.namespace": metadata.namespace}
        for name, path in self._asked.items():
            found = RawObject({}).with_value(decode_path(body, path), *path)
            fields[name] = self._codec.field(found, self.resource.selectable_fields[name])
        return self._fields.matches(fields.__getitem__)


class _Metadata(msgspec.Struct):
    """What selectors ask about all kinds."""

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _OnlyMetadata(msgspec.Struct):
    metadata: _Metadata


_metadata: Final = msgspec.json.Decoder(_OnlyMetadata)
