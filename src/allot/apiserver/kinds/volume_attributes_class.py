"""VolumeAttributesClasses."""

from __future__ import annotations

from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Column, Table
from allot.apiserver.printers.words import age_of, text_at


def _attributes_class_row(attributes: RawObject, age: Age) -> list[Cell]:
    return [attributes.metadata.name, text_at(attributes, "driverName"), age_of(attributes, age)]


DEFINITION: Final = KindDefinition(
    table=Table((NAME, Column("DriverName"), AGE), _attributes_class_row),
    returns_deleted_in=("v1",),
)
