"""CSIStorageCapacities."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import NAME, UNSET, Age, Cell, Column, Table
from allot.apiserver.printers.words import text_at


def _csi_capacity_row(capacity: RawObject, _: Age) -> list[Cell]:
    return [
        capacity.metadata.name,
        text_at(capacity, "storageClassName"),
        str(capacity.get("capacity", default=UNSET)),
    ]


DEFINITION: Final = KindDefinition(
    strategy=partial(RawStrategy, KindRules(needs_resource_version=True)),
    table=Table((NAME, Column("StorageClassName"), Column("Capacity")), _csi_capacity_row),
)
