"""StorageVersionMigrations."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import COUNTED, KindRules, RawStrategy
from allot.apiserver.printers.column import Age, Cell, Column, Table
from allot.apiserver.printers.words import text_at
from allot.validation.api_service import validate_storage_version_migration
from allot.validation.immutable_fields import unchanged


def _migration_row(migration: RawObject, _: Age) -> list[Cell]:
    group = text_at(migration, "spec", "resource", "group")
    plural = text_at(migration, "spec", "resource", "resource")
    status = ""
    for type_ in ("Running", "Succeeded", "Failed"):
        if migration.has_condition(type_):
            status = type_
    return [migration.metadata.name, f"{plural}.{group}" if group else plural, status]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=validate_storage_version_migration,
            validate_change=unchanged("spec"),
            status={},
            generation=COUNTED,
        ),
    ),
    table=Table((Column("Name"), Column("Resource"), Column("Status")), _migration_row),
    subresources=(STATUS,),
    without_effect="stored objects are converted when they are read",
)
