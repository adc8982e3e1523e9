"""ResourceClaimTemplate: a claim spec, and metadata for the claims created from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from allot.api.claims import ResourceClaimTemplate, ResourceClaimTemplateSpec
from allot.api.decoding import to_builtin
from allot.api.meta import ObjectMeta
from allot.api.named_lists import NamedList
from allot.validation.context import Context
from allot.validation.fields import FieldError, FieldPath, forbidden, invalid
from allot.validation.internal_types import internal_value
from allot.validation.metadata import (
    IMMUTABLE,
    validate_annotations,
    validate_labels,
    validate_metadata,
    validate_metadata_update,
)
from allot.validation.resource_claim import SPEC, validate_claim_spec

# Field names as Kubernetes prints them here: Go's, with the first letter in lower case.
_NOT_FOR_TEMPLATES = {
    "name": "name",
    "generate_name": "generateName",
    "namespace": "namespace",
    "self_link": "selfLink",
    "uid": "uID",
    "resource_version": "resourceVersion",
    "generation": "generation",
    "creation_timestamp": "creationTimestamp",
    "deletion_timestamp": "deletionTimestamp",
    "deletion_grace_period_seconds": "deletionGracePeriodSeconds",
    "owner_references": "ownerReferences",
    "finalizers": "finalizers",
    "managed_fields": "managedFields",
}


def validate_template(template: ResourceClaimTemplate, context: Context) -> Iterator[FieldError]:
    yield from validate_metadata(template.metadata, namespaced=True)
    yield from _validate_spec(template.spec, context)


def validate_template_update(
    new: ResourceClaimTemplate, old: ResourceClaimTemplate, context: Context
) -> Iterator[FieldError]:
    """An existing template. Unlike a claim, it is validated again as a whole."""
    yield from validate_metadata_update(new.metadata, old.metadata)
    if new.spec == old.spec:
        # Declared rules skip unchanged values; the hand-written ones apply.
        for error in _validate_spec(new.spec, context, stored=True):
            yield error._replace(declared=False)
    else:
        yield from _validate_spec(new.spec, context)
        yield invalid(SPEC, _shown(new.spec), IMMUTABLE)


def _shown(spec: ResourceClaimTemplateSpec) -> dict[str, Any]:
    """Go's struct has the metadata embedded."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(spec, enc_hook=to_builtin))
    metadata = {name: value for name, value in plain.get("metadata", {}).items() if value != []}
    return metadata | {"Spec": internal_value(plain.get("spec", {}), "ResourceClaimSpec")}


def _validate_spec(
    spec: ResourceClaimTemplateSpec, context: Context, *, stored: bool = False
) -> Iterator[FieldError]:
    yield from _validate_claim_metadata(spec.metadata, SPEC / "metadata")
    yield from validate_claim_spec(spec.spec, SPEC / "spec", context, stored=stored)


def _validate_claim_metadata(metadata: ObjectMeta, path: FieldPath) -> Iterator[FieldError]:
    yield from validate_labels(metadata.labels, path / "labels")
    yield from validate_annotations(metadata.annotations, path / "annotations")
    for field, shown in _NOT_FOR_TEMPLATES.items():
        value = getattr(metadata, field)
        is_zero = field == "deletion_grace_period_seconds" and value is not None
        if value or is_zero or isinstance(value, NamedList):
            yield forbidden(path / shown, "cannot be set")
