"""Which objects of a resource a list, a watch or a deletecollection is about."""

from __future__ import annotations

from typing import NamedTuple

from allot.api.selectors import EVERYTHING, LabelSelector
from allot.apiserver.api_errors import bad_request
from allot.apiserver.http.requests import ApiRequest
from allot.apiserver.http.routes import Target
from allot.apiserver.kinds.resources import Resource
from allot.apiserver.registry.caches import key_prefix
from allot.apiserver.registry.codecs import storage_codec
from allot.apiserver.registry.stored_objects import StoredObject
from allot.apiserver.selectors import (
    FieldRequirement,
    FieldSelector,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
    require_supported,
)


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
            return codec.field(obj, self.resource.fields[name])

        return self.fields.matches(field)


def selection_for(request: ApiRequest, target: Target) -> Selection:
    """What the request selects; 400 for selectors that say nothing."""
    resource = target.resource
    try:
        labels = parse_label_selector(request.query.get("labelSelector", ""))
        fields = parse_field_selector(request.query.get("fieldSelector", ""))
        require_supported(fields, resource.fields, resource.kind if resource.fields else "")
    except SelectorError as error:
        raise bad_request(str(error)) from None
    if target.name:
        # A watch of one object by its path.
        named = FieldRequirement("metadata.name", target.name)
        fields = FieldSelector((*fields.requirements, named))
    return Selection(resource, key_prefix(resource, target.namespace), labels, fields)
