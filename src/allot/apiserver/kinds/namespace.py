"""Namespaces: active, terminating until their contents are removed, then removed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Final

from allot.api.base import replace, whole_seconds
from allot.api.raw import RawObject
from allot.apiserver.defaults.filling import Data, change, fill, make, part
from allot.apiserver.kinds.definition import FINALIZE, STATUS, VERBS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import text_at
from allot.validation import core_objects
from allot.validation.fields import FieldError
from allot.validation.formats import label_problems

NAME_LABEL: Final = "kubernetes.io/metadata.name"


def namespace_defaults(namespace: Data) -> Data:
    """Every namespace carries its name as a label, so that selectors can name it."""
    name = part(namespace, "metadata").get("name")
    if isinstance(name, str) and name:
        namespace = change(namespace, "metadata", lambda metadata: _labelled(metadata, name))
    return make(namespace, "status", lambda status: fill(status, phase="Active"))


def _labelled(metadata: Data, name: str) -> Data:
    labels = part(metadata, "labels")
    if labels.get(NAME_LABEL) == name:
        return metadata
    return metadata | {"labels": labels | {NAME_LABEL: name}}


FINALIZER: Final = "kubernetes"
"""Removed by the namespace controller when the namespace is empty."""


def _prepare_create(namespace: RawObject) -> RawObject:
    """A new namespace with its name as a label and the finalizer that keeps it until it is empty."""
    finalizers = namespace.get("spec", "finalizers", default=[])
    if FINALIZER not in finalizers:
        namespace = namespace.with_value([*finalizers, FINALIZER], "spec", "finalizers")
    return type(namespace)(namespace_defaults(dict(namespace.data)))


def terminate(namespace: RawObject, now: datetime) -> RawObject:
    """A namespace that was deleted but still has finalizers. Deleting it again changes nothing."""
    if namespace.metadata.deletion_timestamp is None:
        metadata = replace(namespace.metadata, deletion_timestamp=whole_seconds(now))
        namespace = namespace.with_metadata(metadata)
    if namespace.get("status", "phase") == "Terminating":
        return namespace
    return namespace.with_value("Terminating", "status", "phase")


def finalize(new: RawObject, old: RawObject) -> RawObject:
    """A write to the finalize endpoint: the stored namespace with the finalizers that were sent."""
    finalizers = new.get("spec", "finalizers", default=[])
    kept = old.with_value(finalizers or None, "spec", "finalizers")
    version = new.metadata.resource_version or old.metadata.resource_version
    return kept.with_metadata(replace(kept.metadata, resource_version=version))


class NamespaceStrategy(RawStrategy):
    """Namespaces: only the finalize endpoint changes `spec.finalizers`."""

    def prepare_create(self, new: RawObject, request: WriteRequest) -> RawObject:
        return _prepare_create(super().prepare_create(new, request))

    def prepare_update(self, new: RawObject, old: RawObject, request: WriteRequest) -> RawObject:
        new = super().prepare_update(new, old, request)
        return new.with_value(old.get("spec", "finalizers"), "spec", "finalizers")

    def validate_status_update(
        self, new: RawObject, old: RawObject, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from super().validate_status_update(new, old, request)
        yield from core_objects.validate_namespace_phase(new)


def _namespace_row(namespace: RawObject, age: Age) -> list[Cell]:
    metadata = namespace.metadata
    return [metadata.name, text_at(namespace, "status", "phase"), age(metadata.creation_timestamp)]


DEFINITION: Final = KindDefinition(
    strategy=partial(NamespaceStrategy, KindRules(label_problems, status={"phase": "Active"})),
    defaults=namespace_defaults,
    table=Table((NAME, Column("Status"), AGE), _namespace_row),
    subresources=(FINALIZE, STATUS),
    selectable_fields={"status.phase": "status.phase"},
    verbs=tuple(verb for verb in VERBS if verb != "deletecollection"),
)
