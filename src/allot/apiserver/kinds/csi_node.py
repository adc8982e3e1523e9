"""CSINodes."""

from __future__ import annotations

from functools import partial
from typing import Final

from allot.api.raw import RawObject
from allot.apiserver.kinds.definition import STATUS, KindDefinition
from allot.apiserver.kinds.raw_strategy import KindRules, RawStrategy
from allot.apiserver.printers.column import AGE, NAME, Age, Cell, Table, number
from allot.apiserver.printers.words import age_of


def _csi_node_row(node: RawObject, age: Age) -> list[Cell]:
    drivers = node.get("spec", "drivers", default=[])
    return [node.metadata.name, len(drivers), age_of(node, age)]


DEFINITION: Final = KindDefinition(
    strategy=partial(RawStrategy, KindRules(needs_resource_version=True, status={})),
    table=Table((NAME, number("Drivers"), AGE), _csi_node_row),
    subresources=(STATUS,),
    returns_deleted_in=("v1",),
)
