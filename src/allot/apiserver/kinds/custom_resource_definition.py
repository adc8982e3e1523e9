"""CustomResourceDefinitions. What they define is served by `registry/custom_definitions.py`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from allot.api.base import replace, whole_seconds
from allot.api.custom_resources import CLEANUP, TERMINATING, CustomResourceDefinition
from allot.api.meta import ObjectMeta
from allot.api.raw import RawObject
from allot.api.times import written_time
from allot.apiserver.defaults.filling import Data, change
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.request import WriteRequest
from allot.apiserver.kinds.strategy import StatusStrategy
from allot.apiserver.printers.column import NAME, Age, Cell, Column, Table, flag, wide
from allot.apiserver.printers.words import joined
from allot.apiserver.schemas.known_fields import with_known_fields
from allot.apiserver.schemas.types import type_named
from allot.validation.custom_resource_definition import (
    name_problems,
    validate_definition,
    validate_definition_update,
)
from allot.validation.fields import FieldError
from allot.validation.metadata import validate_metadata, validate_metadata_update
from allot.validation.structural.schemas import Schema
from allot.validation.structural.structure_rules import schema_warnings


def definition_defaults(definition: Data) -> Data:
    """What the API knows of a definition, with names that follow from the kind, and a conversion strategy."""
    known = with_known_fields(definition, type_named(_TYPE), _POINTERS)
    return _with_stored_versions(change(known, "spec", _spec_defaults))


def _with_stored_versions(definition: Data) -> Data:
    """A status that is sent without stored versions has the storage version."""
    storage = CustomResourceDefinition(definition).storage_version
    return change(
        definition,
        "status",
        lambda status: (
            status
            if status.get("storedVersions") or not storage
            else {**status, "storedVersions": [storage]}
        ),
    )


_TYPE: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
_POINTERS: Final = frozenset(
    {
        "deprecationWarning", "labelSelectorPath", "optionalOldSelf", "path", "port", "reason", "url",
        "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields",
    }
)  # fmt: skip


def _spec_defaults(spec: Data) -> Data:
    spec = change(spec, "names", _names_defaults)
    return spec if spec.get("conversion") else {**spec, "conversion": {"strategy": "None"}}


def _names_defaults(names: Data) -> Data:
    kind = names.get("kind")
    if not isinstance(kind, str) or not kind:
        return names
    if not names.get("singular"):
        names = {**names, "singular": kind.lower()}
    return names if names.get("listKind") else {**names, "listKind": f"{kind}List"}


class DefinitionStrategy(StatusStrategy[CustomResourceDefinition]):
    """The steps of a write of a definition."""

    def prepare_create(
        self, new: CustomResourceDefinition, request: WriteRequest
    ) -> CustomResourceDefinition:
        status: dict[str, Any] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}
        # The first one: with several, which is refused, it is stored as that one already.
        if new.storage_version:
            status["storedVersions"] = [new.storage_version]
        new = new.with_value(status, "status")
        return new.with_metadata(replace(new.metadata, generation=1))

    def validate_create(
        self, new: CustomResourceDefinition, request: WriteRequest
    ) -> Iterator[FieldError]:
        spec = new.get("spec", default={})
        yield from validate_metadata(
            new.metadata, namespaced=False, name_problems=lambda name: name_problems(spec, name)
        )
        yield from validate_definition(new.data, deadline=request.new_deadline())

    def prepare_update(
        self, new: CustomResourceDefinition, old: CustomResourceDefinition, request: WriteRequest
    ) -> CustomResourceDefinition:
        status = dict(old.get("status", default={}))
        stored = list(status.get("storedVersions") or ())
        if new.storage_version and new.storage_version not in stored:
            status["storedVersions"] = [*stored, new.storage_version]
        new = new.with_value(status, "status")
        changed = new.get("spec") != old.get("spec")
        metadata = replace(new.metadata, generation=old.metadata.generation + changed)
        return new.with_metadata(metadata)

    def validate_update(
        self, new: CustomResourceDefinition, old: CustomResourceDefinition, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from validate_metadata_update(new.metadata, old.metadata)
        immutable = list(validate_definition_update(new.data, old.data))
        yield from immutable
        yield from validate_definition(new.data, old.data, request.new_deadline())

    def prepare_status_update(
        self, new: CustomResourceDefinition, old: CustomResourceDefinition, request: WriteRequest
    ) -> CustomResourceDefinition:
        kept = old.with_value(new.get("status"), "status")
        return kept.with_metadata(
            replace(
                new.metadata,
                generation=old.metadata.generation,
                labels=old.metadata.labels,
                annotations=old.metadata.annotations,
                owner_references=old.metadata.owner_references,
            )
        )

    def validate_status_update(
        self, new: CustomResourceDefinition, old: CustomResourceDefinition, request: WriteRequest
    ) -> Iterator[FieldError]:
        yield from validate_metadata_update(new.metadata, old.metadata)

    def accepts_unconditional_update(self, version: str) -> bool:
        return False

    def warnings(self, new: CustomResourceDefinition) -> list[str]:
        found: list[str] = []
        for version in new.versions:
            source = (version.get("schema") or {}).get("openAPIV3Schema")
            if source:
                found += schema_warnings(Schema(source))
        return list(dict.fromkeys(found))

    def with_metadata(self, obj: Any, metadata: ObjectMeta) -> Any:
        return obj.with_metadata(metadata)

    def as_listed(self, errors: list[FieldError], request: WriteRequest) -> list[FieldError]:
        return errors


def terminate(definition: CustomResourceDefinition, now: datetime) -> CustomResourceDefinition:
    """A definition that is being deleted: it stays until its objects are deleted."""
    metadata = definition.metadata
    marked = definition.with_metadata(
        replace(
            metadata,
            finalizers=(*metadata.finalizers, CLEANUP),
            deletion_timestamp=whole_seconds(now),
            deletion_grace_period_seconds=None,
        )
    )
    return with_condition(
        marked,
        TERMINATING,
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        now,
    )


def with_condition(
    definition: CustomResourceDefinition,
    type_: str,
    status: str,
    reason: str,
    message: str,
    now: datetime,
) -> CustomResourceDefinition:
    """The definition with a condition; its time is that of its last change of status."""
    known = definition.condition(type_)
    is_same = known is not None and known.get("status") == status
    condition = {
        "type": type_,
        "status": status,
        "lastTransitionTime": known.get("lastTransitionTime")
        if is_same and known
        else written_time(now),
        "reason": reason,
        "message": message,
    }
    conditions = list(definition.get("status", "conditions", default=()))
    if known is None:
        conditions.append(condition)
    else:
        conditions = [condition if each is known else each for each in conditions]
    return definition.with_value(conditions, "status", "conditions")


def _row(obj: RawObject, _: Age) -> list[Cell]:
    definition = CustomResourceDefinition(obj.data)
    created = definition.metadata.creation_timestamp
    versions = [
        f"{version['name']}(storage)" if version.get("storage") else version["name"]
        for version in definition.versions
        if version.get("served") or version.get("storage")
    ]
    established = definition.condition("Established")
    return [
        definition.metadata.name,
        str(definition.get("spec", "scope", default="")),
        joined(versions),
        written_time(created) if created is not None else "",
        definition.group,
        str(definition.names.get("kind", "")),
        joined(definition.names.get("shortNames") or ()),
        established is not None,
    ]


DEFINITION: Final = KindDefinition(
    strategy=DefinitionStrategy,
    defaults=definition_defaults,
    table=Table(
        (
            NAME,
            Column("Scope"),
            Column("Versions"),
            Column("Created At", "date"),
            wide("Group"),
            wide("Kind"),
            wide("ShortNames"),
            flag("Established")._replace(priority=1),
        ),
        _row,
    ),
    subresources=(STATUS,),
)
