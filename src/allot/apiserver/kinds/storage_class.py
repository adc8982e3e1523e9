"""StorageClasses."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.api.volumes import DEFAULT_CLASS
from allot.apiserver.defaults.filling import Data, fill
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, text_at
from allot.validation import volumes


def storage_class_defaults(storage_class: Data) -> Data:
    return fill(storage_class, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _storage_class_row(storage_class: RawObject, age: Age) -> list[Cell]:
    annotations = storage_class.metadata.annotations
    is_default = any(annotations.get(key) == "true" for key in DEFAULT_CLASS)
    return [
        storage_class.metadata.name + (" (default)" if is_default else ""),
        text_at(storage_class, "provisioner"),
        str(storage_class.get("reclaimPolicy", default="Delete")),
        str(storage_class.get("volumeBindingMode", default="Immediate")),
        "true" if storage_class.get("allowVolumeExpansion") else "false",
        age_of(storage_class, age),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(
        RawStrategy,
        KindRules(
            validate=volumes.validate_storage_class,
            validate_change=volumes.validate_storage_class_update,
        ),
    ),
    defaults=storage_class_defaults,
    table=Table(
        (
            NAME,
            Column("Provisioner"),
            Column("ReclaimPolicy"),
            Column("VolumeBindingMode"),
            Column("AllowVolumeExpansion"),
            AGE,
        ),
        _storage_class_row,
    ),
    returns_deleted_in=("v1",),
)
