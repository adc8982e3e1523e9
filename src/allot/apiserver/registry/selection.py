"""Which objects of a resource a list, a watch or a deletecollection is about."""

from __future__ import annotations

from typing import NamedTuple

from allot.api.selectors import EVERYTHING, LabelSelector
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.selectors import (
    FieldSelector,
)
from allot.apiserver.watch_cache.caches import key_prefix
from allot.apiserver.watch_cache.codecs import storage_codec
from allot.apiserver.watch_cache.stored_objects import StoredObject


class Selection(NamedTuple):
    """Objects under a prefix that match two selectors."""

    resource: Resource
    prefix: str
    labels: LabelSelector = EVERYTHING
    fields: FieldSelector = FieldSelector(())

    @property
    def is_everything(self) -> bool:
        """Whether there is nothing to match, so that objects need not be looked into."""
        return self.labels.is_everything and self.fields.is_everything

    @property
    def only_key(self) -> str | None:
        """The key of the only object that can match, if the selectors name one: it is looked up, not searched for."""
        name = self.fields.exact("metadata.name")
        if name is None or (self.resource.namespaced and self.prefix == key_prefix(self.resource)):
            return None
        return self.prefix + name

    def matches(self, stored: StoredObject | None) -> bool:
        """Whether the object, if there is one, is selected. Its prefix counts too."""
        if stored is None or not stored.key.startswith(self.prefix):
            return False
        if self.is_everything:
            return True
        obj = stored.object
        metadata = obj.metadata
        if not self.labels.is_everything and not self.labels.matches(metadata.labels):
            return False
        if self.fields.is_everything:
            return True
        codec = storage_codec(self.resource)

        def field(name: str) -> str:
            match name:
                case "metadata.name":
                    return str(metadata.name)
                case "metadata.namespace":
                    return str(metadata.namespace)
            return codec.field(obj, self.resource.selectable_fields[name])

        return self.fields.matches(field)
